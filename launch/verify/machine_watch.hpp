// The machine while a run goes on, read from beside it: clocks of processors and GPUs, and what
// others take of the processors. Runs themselves do nothing for it. A new side that is slower
// because the machine was hot, or busy with something else, is no slower version.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profiling/record/nvml.hpp"
#include "profiling/verify/machine_change.hpp"

namespace sidestream::launch {

class MachineWatch {
 public:
  struct Sources {
    std::filesystem::path processors = "/sys/devices/system/cpu";
    std::string nvml = "libnvidia-ml.so.1";
    std::filesystem::path processor_times = "/proc/stat";
  };

  MachineWatch() : MachineWatch(Sources{}) {}
  explicit MachineWatch(const Sources& sources);

  // Looks at most once a second. Of the GPUs those count that are busy, of the processors each by
  // how long it was: an idle one clocks down, and says nothing of the run.
  void look();
  // Means since the last take; nothing where the machine does not tell. To be called when the run
  // has ended and was waited for: before that, its own work would count as that of others.
  verify::MachineState take();

 private:
  struct Mean {
    double sum = 0, weight = 0;
    void add(double value, double of_weight = 1);
    std::optional<double> take();
  };
  // Seconds of processors up to now.
  struct Spent {
    double total = 0;  // of all of them; 0: not known
    double busy = 0;
    double own = 0;  // this process and those that it waited for, with their descendants
  };
  Spent spent() const;
  std::optional<double> foreign_share();
  void look_at_processors();
  void look_at_gpus();

  using Clock = std::chrono::steady_clock;
  std::map<std::string, std::filesystem::path> frequency_files_;  // "cpu3"
  std::map<std::string, double> processors_before_;               // busy so far, in ticks
  std::vector<std::unique_ptr<record::Nvml>> gpus_;
  Clock::time_point looked_ = {};
  std::filesystem::path processor_times_;
  Spent before_;
  Mean cpu_mhz_, gpu_mhz_, gpu_held_down_;
};

}  // namespace sidestream::launch

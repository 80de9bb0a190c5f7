// The clocks of processors and GPUs while a run goes on, read from beside it: runs themselves do
// nothing for it. A new side that is slower because the machine was hot is no slower version.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "profiling/record/nvml.hpp"
#include "profiling/verify/clock_change.hpp"

namespace sidestream::launch {

class ClockWatch {
 public:
  struct Sources {
    std::filesystem::path processors = "/sys/devices/system/cpu";
    std::string nvml = "libnvidia-ml.so.1";
  };

  ClockWatch() : ClockWatch(Sources{}) {}
  explicit ClockWatch(const Sources& sources);

  // Looks at most once a second. Of the GPUs those count that are busy.
  void look();
  // Means since the last take; nothing where the machine tells no clock.
  verify::Clocks take();

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    void add(double value);
    std::optional<double> take();
  };
  void look_at_processors();
  void look_at_gpus();

  using Clock = std::chrono::steady_clock;
  std::vector<std::filesystem::path> frequency_files_;
  std::vector<std::unique_ptr<record::Nvml>> gpus_;
  Clock::time_point looked_ = {};
  Mean cpu_mhz_, gpu_mhz_, gpu_held_down_;
};

}  // namespace sidestream::launch

// Which rank an event of an export belongs to: a rank is one device of one process.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

class NsysProcesses {
 public:
  // Bits of a globalPid or globalTid, as the export's documentation gives them.
  static std::uint32_t process_of(std::int64_t global_id) {
    return static_cast<std::uint32_t>(global_id >> 24) & 0xFFFFFFu;
  }
  static std::uint32_t thread_of(std::int64_t global_id) {
    return static_cast<std::uint32_t>(global_id) & 0xFFFFFFu;
  }

  // Made when it is new. Host events come after all device events.
  RankTimeline& of_device(std::uint32_t process, int device);
  // All devices of a process; a process without device work gets one timeline.
  const std::vector<std::size_t>& of_process(std::uint32_t process);
  struct Device {
    std::uint32_t process = 0;
    int device = 0;  // CUDA's number in that process
    std::size_t timeline = 0;
  };
  // That did work.
  std::vector<Device> devices() const;
  RankTimeline& operator[](std::size_t index) { return timelines_[index]; }

  struct Ranks {
    // In the order of processes and devices; ranks are
    // numbered, or MPI's where all processes have one.
    std::vector<RankTimeline> timelines;
    bool known = false;  // MPI's
    int helpers = 0;     // processes that are no rank: they have neither device work nor steps or
                         // phases, while others do
  };
  Ranks take(const std::map<std::uint32_t, int>& mpi_ranks);
  std::size_t size() const noexcept { return timelines_.size(); }

 private:
  static constexpr int kNoDevice = -1;

  std::size_t add(std::uint32_t process, int device);

  std::vector<RankTimeline> timelines_;
  std::map<std::pair<std::uint32_t, int>, std::size_t> of_device_;
  std::map<std::uint32_t, std::vector<std::size_t>> of_process_;
};

}  // namespace sidestream::trace

// Puts what host threads did onto the timelines of their process.
//
// A process that drives several devices has a timeline for each. Its ranges and locks are shown on
// all of them. A runtime call goes to one: the device it launched work on, else the one that its
// thread launched on before (cudaSetDevice holds until the next call of it), else to all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiling/ranges/phases.hpp"
#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/senseless_times.hpp"

namespace sidestream::trace {

struct HostRow {
  Kind kind = Kind::kOther;
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t global_tid = 0;
  std::uint64_t correlation = 0;
  int lane = 0;  // above 0: on no thread, but in flight beside others
  std::optional<ranges::CollectivePayload> payload = {};
};

class NsysHostRows {
 public:
  // To be made when all device rows are there.
  NsysHostRows(NsysProcesses& processes, SenselessTimes& senseless)
      : processes_(processes), senseless_(senseless) {}

  // Calls of a process with several devices come in the order of time. The correlation of a call
  // that launched nothing is not kept where that is known: most calls do not.
  void add(HostRow row);
  // Counts a row of that table for what is wrong with its times.
  void leave_out(const HostRow& row, const TimeFault& fault, const char* table);

 private:
  // Correlation -> place among the timelines of the process.
  class Launches {
   public:
    Launches(NsysProcesses& processes, const std::vector<std::size_t>& timelines);
    int find(std::uint64_t correlation);

   private:
    struct Launch {
      std::uint64_t correlation;
      int place;
    };
    std::vector<Launch> launches_;  // sorted
    std::size_t last_ = 0;          // calls come in the order of their correlation, nearly always
  };

  struct Thread {
    std::vector<std::size_t> timelines;
    std::vector<std::uint32_t> tracks;  // one for each of them
    Launches* launches = nullptr;       // null: one device
    int place = kEverywhere;            // of the device it used last
  };
  static constexpr int kEverywhere = -1;

  // Process or thread, and lane.
  using ThreadKey = std::pair<std::int64_t, int>;

  Thread& thread_of(const HostRow& row);
  void find_tracks(const HostRow& row, Thread& thread);
  void add_at(const HostRow& row, const Thread& thread, std::size_t place);

  NsysProcesses& processes_;
  SenselessTimes& senseless_;
  std::map<ThreadKey, Thread> threads_;
  std::unordered_map<std::uint32_t, Launches> launches_;
  Thread* last_ = nullptr;
  ThreadKey last_key_;
};

}  // namespace sidestream::trace

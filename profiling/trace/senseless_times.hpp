// What is said of the events that are left out for their times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/time_fault.hpp"

namespace sidestream::trace {

// Events of one file whose times cannot be: how many, and where the first of them is.
class SenselessTimes {
 public:
  enum class Unit { kEvent, kRow };
  explicit SenselessTimes(Unit unit) : unit_(unit) {}

  // An absence counts of a step mark in JSON alone: reports change without a step. `place`: "number
  // 10 of the file", of a row its table; `name`: of the event.
  void add(const TimeFault& fault, std::string_view place, std::string_view name);
  // "5 events are left out for times that cannot be; the first is ...". None: no line.
  std::vector<std::string> warnings() const;

 private:
  bool counts(const TimeFault& fault, std::string_view name) const;

  Unit unit_;
  std::uint64_t count_ = 0;
  std::string first_;
};

}  // namespace sidestream::trace

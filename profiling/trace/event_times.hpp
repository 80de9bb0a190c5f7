// When an event of a Kineto trace was, if what stands there can be.
#pragma once

#include <cstdint>
#include <optional>

#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/time_fault.hpp"

namespace sidestream::trace {

struct EventTimes {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::optional<TimeFault> fault = {};
};

enum class EventShape { kInstant, kSpan };

// Of a span also "dur". Sums of a start and a duration without a fault, and of one with a base
// time, do not overflow.
EventTimes times_of(const KinetoFields& fields, EventShape shape);

}  // namespace sidestream::trace

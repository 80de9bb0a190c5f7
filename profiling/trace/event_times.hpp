// When an event of a Kineto trace was, if what stands there can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiling/trace/kineto_fields.hpp"

namespace sidestream::trace {

struct TimeFault {
  const char* reason;      // under which the event is counted
  const char* expected;    // empty: the field is not there
  std::string_view found;  // as it stands in the file
  // Nothing is wrong then: profilers leave fields out.
  bool is_absence() const { return *expected == '\0'; }
  // "expected \"ts\" in microseconds, found 'soon'"
  std::string text() const;
};

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

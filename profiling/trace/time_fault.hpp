// Why the times of an event are not believed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sidestream::trace {

struct TimeFault {
  const char* reason;      // under which the event is counted
  const char* expected;    // empty: the field is not there
  std::string_view found;  // as it stands in the file
  // Profilers leave fields out: of most events nothing is wrong then.
  bool is_absence() const { return *expected == '\0'; }
  // "expected \"ts\" in microseconds, found 'soon'"; of an absence "no time"
  std::string text() const;
};

// What is said of one field of an event, or column of a table, that has a time.
struct TimeWords {
  const char* missing;
  const char* no_number;
  const char* out_of_range;
  const char* number;
  const char* range;
  std::int64_t most_ns;  // what is further from 0 is out of range

  TimeFault is_missing() const { return {missing, "", {}}; }
  TimeFault is_no_number(std::string_view found) const { return {no_number, number, found}; }
  TimeFault is_out_of_range(std::string_view found) const { return {out_of_range, range, found}; }
};

}  // namespace sidestream::trace

// Why the times of an event are not believed.
#pragma once

#include <string>
#include <string_view>

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

}  // namespace sidestream::trace

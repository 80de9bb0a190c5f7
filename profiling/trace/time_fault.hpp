// Why the times of an event are not believed, and what is said of all events left out for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Events of one file whose times cannot be: how many, and where the first of them is.
class SenselessTimes {
 public:
  enum class Unit { kEvent, kRow };
  explicit SenselessTimes(Unit unit) : unit_(unit) {}

  // An absence does not count. `place`: "number 10 of the file"; `name`: of the event.
  void add(const TimeFault& fault, std::string_view place, std::string_view name);
  // "5 events are left out for times that cannot be; the first is ...". None: no line.
  std::vector<std::string> warnings() const;

 private:
  Unit unit_;
  std::uint64_t count_ = 0;
  std::string first_;
};

}  // namespace sidestream::trace

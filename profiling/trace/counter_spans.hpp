// Since when the readings of a counter hold.
//
// Ours come at the end of the time that they are of, while a Chrome trace shows a counter from its
// event on. A merged trace has rates at the beginning of their time, therefore, with its length as
// "dur": tools pass over that, and the reader finds the time of the reading again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sidestream::trace {

// By its unit: "disk [MiB/s]", "gpu use [%]". Others, such as memory, are of a moment.
inline bool is_rate(std::string_view counter) {
  return counter.ends_with("%]") || counter.ends_with("/s]");
}

class CounterSpans {
 public:
  // The time of the reading before this one, in the order of time; of the first one, and of what
  // is no rate, its own.
  std::int64_t begin_of(std::string_view counter, std::int64_t time_ns) {
    if (!is_rate(counter)) return time_ns;
    auto place = times_.find(counter);
    if (place == times_.end())
      place = times_.emplace(std::string(counter), Times{time_ns, time_ns}).first;
    auto& [before_ns, now_ns] = place->second;
    if (time_ns != now_ns) before_ns = std::exchange(now_ns, time_ns);
    return std::min(before_ns, time_ns);
  }

 private:
  struct Times {
    std::int64_t before_ns = 0;
    std::int64_t now_ns = 0;
  };
  std::map<std::string, Times, std::less<>> times_;
};

}  // namespace sidestream::trace

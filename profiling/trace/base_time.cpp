#include "profiling/trace/base_time.hpp"

#include "core/base/printable.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/latest_time.hpp"

namespace sidestream::trace {

void read_base_time(std::string_view text, RankInfo& info) {
  constexpr std::size_t kShown = 40;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  info.base_ns = 0;
  info.senseless_base.clear();
  if (text.empty() || text == "null") return;
  constexpr std::int64_t kNone = INT64_MIN;
  const std::int64_t base_ns = integer_of(text, kNone);
  if (is_within(base_ns, kLatestNs))
    info.base_ns = base_ns;
  else
    info.senseless_base = core::printable(text.substr(0, kShown));
}

std::optional<std::string> base_time_warning(const RankInfo& info) {
  if (info.senseless_base.empty()) return std::nullopt;
  return std::string(info.of_nsys ? "utcEpochNs" : "baseTimeNanoseconds") +
         ", the time that others count from: expected nanoseconds since 1970, until 2043, found '" +
         info.senseless_base + "': 0 is taken, and ranks of other files do not line up with it";
}

}  // namespace sidestream::trace

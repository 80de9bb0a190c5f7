#include <fmt/format.h>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"
#include "launch/doctor/usable_memory.hpp"

namespace sidestream::launch::doctor {
namespace {

std::string found_text(const MemoryFacts& memory) {
  const std::int64_t usable = usable_bytes(memory);
  std::string text = fmt::format("{} free", bytes_text(usable));
  if (usable < memory.available_bytes)
    text += fmt::format(": the control group allows {}, the machine has {} free",
                        bytes_text(memory.limit_bytes), bytes_text(memory.available_bytes));
  return text;
}

}  // namespace

std::optional<Finding> check_memory(const JobFacts& job) {
  const int ranks = most_ranks_of_a_host(job);
  return worst_over(job, Subject::kHost, [&](const RankFacts& rank) -> Finding {
    const std::int64_t usable = usable_bytes(rank.memory);
    const std::int64_t smallest = ranks * kSmallestRankBytes;
    const std::int64_t example = smallest + ranks * job.need.rank_bytes;
    Finding finding{.name = "memory", .found = found_text(rank.memory)};
    if (usable >= example) return finding;
    finding.level = usable < smallest ? Level::kError : Level::kWarning;
    finding.expected = fmt::format(
        "{} for {} rank(s){}", bytes_text(usable < smallest ? smallest : example), ranks,
        usable < smallest ? " before any model is there"
                          : " of " + job.need.model + ", without activations");
    finding.remedy =
        "end what uses it (top names it), give the container more (--memory), start "
        "fewer ranks a host, or take a smaller --model";
    return finding;
  });
}

}  // namespace sidestream::launch::doctor

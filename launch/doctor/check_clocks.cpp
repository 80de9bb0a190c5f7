#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

// Every range of a recording reads the clock twice: without a system call, or not.
std::optional<Finding> check_clock_source(const JobFacts& job) {
  if (job.ranks.front().clock_source.empty()) return std::nullopt;
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
    constexpr std::array kSlow = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen"};
    Finding finding{.name = "clock-source",
                    .found = fmt::format("the kernel takes the time from '{}'", rank.clock_source)};
    if (std::find(kSlow.begin(), kSlow.end(), rank.clock_source) == kSlow.end()) return finding;
    finding.level = Level::kNote;
    finding.expected = "'tsc' or another that needs no system call: recordings cost more with this";
    finding.remedy =
        "look for 'clocksource' in dmesg; tsc=reliable on the kernel's command line "
        "where the processor's counter is sound";
    return finding;
  });
}

// Reports put the ranks on one clock by themselves; files of several hosts, certificates and people
// who compare logs do not.
std::optional<Finding> check_host_clocks(const JobFacts& job) {
  constexpr double kGood_s = 0.1, kBad_s = 1;
  if (job.topology.node_count < 2 || job.clock_offsets_s.size() != job.ranks.size())
    return std::nullopt;
  const auto [first, last] =
      std::minmax_element(job.clock_offsets_s.begin(), job.clock_offsets_s.end());
  const double apart_s = *last - *first;
  Finding finding{
      .name = "host-clocks",
      .found = fmt::format("the clocks of the hosts are {} apart", seconds_text(apart_s))};
  if (apart_s <= kGood_s) return finding;
  const auto place = [&](auto at) {
    return job.topology.hosts.at(static_cast<std::size_t>(at - job.clock_offsets_s.begin()));
  };
  finding.found = fmt::format("the clock of {} is {} ahead of that of {}", place(first),
                              seconds_text(apart_s), place(last));
  finding.level = apart_s > kBad_s ? Level::kWarning : Level::kNote;
  finding.expected = fmt::format("within {}", seconds_text(kGood_s));
  finding.remedy = "chronyc makestep on the host that is off, and NTP on all of them (timedatectl)";
  return finding;
}

}  // namespace sidestream::launch::doctor

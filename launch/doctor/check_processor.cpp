#include <fmt/format.h>

#include <algorithm>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

std::optional<Finding> check_processor(const JobFacts& job) {
  const ProcessorFacts& first = job.ranks.front().processor;
  for (const std::size_t rank : first_ranks(job)) {
    const ProcessorFacts& other = job.ranks[rank].processor;
    if (other.name == first.name) continue;
    return Finding{.name = "processor",
                   .level = Level::kNote,
                   .found = fmt::format("{} on {}, {} on {}", first.name, job.topology.hosts[0],
                                        other.name, job.topology.hosts[rank]),
                   .expected = "equal hosts: the slowest sets the pace",
                   .remedy = "choose hosts of one kind (--hosts)"};
  }
  const comm::Machine& machine = first.machine;
  return Finding{.name = "processor",
                 .found = fmt::format("{}, {} socket(s), {} NUMA node(s), {} cores, {} hardware "
                                      "threads, {}",
                                      first.name, machine.packages, machine.numa_nodes,
                                      machine.cores, machine.processors, first.capability)};
}

std::optional<Finding> check_clock_rate(const JobFacts& job) {
  if (job.ranks.front().processor.governor.empty()) return std::nullopt;
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
    const std::string& governor = rank.processor.governor;
    Finding finding{.name = "clock-rate",
                    .found = fmt::format("the processor's clock rate follows '{}'", governor)};
    if (governor != "powersave" && governor != "conservative") return finding;
    finding.level = Level::kNote;
    finding.expected = "'performance', for equal step times";
    finding.remedy = "cpupower frequency-set -g performance (as root)";
    return finding;
  });
}

// A quota below the processors that a container shows stops all its threads in the middle of a
// step.
std::optional<Finding> check_quota(const JobFacts& job) {
  const bool any = worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
                     return {.level = rank.processor.quota > 0 ? Level::kNote : Level::kOk};
                   }).level != Level::kOk;
  if (!any) return std::nullopt;
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
    const ProcessorFacts& processor = rank.processor;
    const auto allowed = static_cast<double>(processor.allowed.size());
    Finding finding{.name = "processor-quota",
                    .found = fmt::format("a quota of {:.3g} processors, {} are shown",
                                         processor.quota, processor.allowed.size())};
    if (processor.quota == 0 || processor.quota >= allowed) return finding;
    finding.level = Level::kWarning;
    finding.expected = "a quota of as many processors as the ranks may run on";
    finding.remedy = fmt::format(
        "start the container with --cpuset-cpus instead of --cpus, or say --threads so that all "
        "ranks together have {:.0f}",
        std::max(1.0, processor.quota));
    return finding;
  });
}

std::optional<Finding> check_load(const JobFacts& job) {
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
    const ProcessorFacts& processor = rank.processor;
    const double processors = std::max(1, processor.machine.processors);
    Finding finding{.name = "load",
                    .found = fmt::format(
                        "in the last minute {:.1f} processes wanted to run, on {:.0f} processors",
                        processor.load, processors)};
    if (processor.load < 0.5 * processors) return finding;
    finding.level = Level::kNote;
    finding.expected = "a machine of its own: less than half as many";
    finding.remedy = "wait for what runs there (top names it), or expect slower steps";
    return finding;
  });
}

}  // namespace sidestream::launch::doctor

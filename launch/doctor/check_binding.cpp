#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

// Ranks with the same processors share them out evenly; ranks whose processors overlap in part get
// in each other's way unnoticed.
std::optional<std::string> partial_overlap(const JobFacts& job) {
  for (std::size_t a = 0; a < job.ranks.size(); ++a) {
    const std::vector<int>& mine = job.ranks[a].processor.allowed;
    for (std::size_t b = a + 1; b < job.ranks.size(); ++b) {
      const std::vector<int>& theirs = job.ranks[b].processor.allowed;
      if (job.ranks[a].host != job.ranks[b].host || mine == theirs) continue;
      std::vector<int> both;
      std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                            std::back_inserter(both));
      if (!both.empty())
        return fmt::format(
            "ranks {} and {} on {} are bound to different processors, and both to {}", a, b,
            job.topology.hosts[a], fmt::join(both, ","));
    }
  }
  return std::nullopt;
}

int processors_of_ranks(const JobFacts& job, int host) {
  std::set<int> all;
  for (const RankFacts& rank : job.ranks) {
    if (rank.host == host) all.insert(rank.processor.allowed.begin(), rank.processor.allowed.end());
  }
  return static_cast<int>(all.size());
}

struct HostBinding {
  std::string host;
  int ranks = 0;
  int used = 0;  // processors that its ranks may run on
  int all = 0;   // that it has for them
};

// The host on which a rank has the fewest.
HostBinding tightest(const JobFacts& job) {
  HostBinding worst;
  for (const std::size_t rank : first_ranks(job)) {
    const HostBinding one{job.topology.hosts.at(rank), ranks_beside(job, rank),
                          processors_of_ranks(job, job.ranks[rank].host),
                          job.ranks[rank].processor.machine.processors};
    const bool tighter = one.used * worst.ranks < worst.used * one.ranks;
    if (worst.ranks == 0 || tighter) worst = one;
  }
  return worst;
}

}  // namespace

std::optional<Finding> check_binding(const JobFacts& job) {
  Finding finding{.name = "binding"};
  if (const auto overlap = partial_overlap(job)) {
    finding.level = Level::kWarning;
    finding.found = *overlap;
    finding.expected = "processors of its own for each rank, or the same for all ranks of a host";
    finding.remedy =
        "start with `launch/run` or `mpirun --bind-to none`: the ranks share the "
        "processors out themselves";
    return finding;
  }
  const HostBinding host = tightest(job);
  finding.found = fmt::format("{} rank(s) on {} may run on {} of its {} hardware threads",
                              host.ranks, host.host, host.used, host.all);
  if (host.used < host.ranks) {
    finding.level = Level::kWarning;
    finding.expected =
        "a processor or more for each rank: ranks that take turns wait for each other";
    finding.remedy = "start fewer ranks there (-np, --hosts), or bind to more processors";
  } else if (host.used < host.all) {
    finding.level = host.ranks > 1 ? Level::kWarning : Level::kNote;
    finding.expected = "all of them, unless a batch system gave the rest to others";
    finding.remedy =
        "start with `launch/run` or `mpirun --bind-to none`; alone, look at taskset "
        "and cpuset";
  }
  return finding;
}

}  // namespace sidestream::launch::doctor

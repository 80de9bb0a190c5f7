#include <fmt/format.h>

#include "launch/doctor/checks.hpp"

namespace sidestream::launch::doctor {

// Two builds in one job may lay out buckets differently and sum what does not belong together.
std::optional<Finding> check_program(const JobFacts& job) {
  const ProgramFacts& first = job.ranks.front().program;
  Finding finding{.name = "program", .found = fmt::format("Sidestream {}", first.version)};
  if (job.ranks.size() > 1) finding.found += ", the same file on all ranks";
  for (std::size_t rank = 1; rank < job.ranks.size(); ++rank) {
    const ProgramFacts& other = job.ranks[rank].program;
    if (other.sha256 == first.sha256) continue;
    finding.level = Level::kError;
    finding.found = fmt::format("{} runs another build (Sidestream {}) than {} (Sidestream {})",
                                job.topology.place_of(rank), other.version,
                                job.topology.place_of(0), first.version);
    finding.expected = "one program on all ranks";
    finding.remedy = "copy the build to every host, or put it on a file system that all see";
    break;
  }
  return finding;
}

}  // namespace sidestream::launch::doctor

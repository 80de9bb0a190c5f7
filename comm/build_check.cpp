#include "comm/build_check.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "comm/job_setup.hpp"
#include "core/base/build_id.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {

std::string build_difference(std::span<const std::string> build_ids,
                             std::span<const std::string> hosts) {
  std::map<std::string, std::string> ranks_by_build;
  for (std::size_t rank = 0; rank < build_ids.size(); ++rank) {
    if (build_ids[rank].empty()) return {};
    std::string& ranks = ranks_by_build[build_ids[rank]];
    ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(rank) + " on " + hosts[rank];
  }
  if (ranks_by_build.size() <= 1) return {};
  std::string text = "the ranks run different builds of the program:";
  for (const auto& [build, ranks] : ranks_by_build) text += " " + build + " (" + ranks + ");";
  text.back() = '.';
  return text + " Copy one build to every host, or put it on a file system that all see";
}

void require_one_build(MPI_Comm job) {
  const std::vector<std::string> build_ids = meeting_over(job).exchange(core::build_id());
  const std::string difference = build_difference(build_ids, host_names(job));
  if (!difference.empty()) throw core::ConfigError(difference);
}

}  // namespace sidestream::comm

// The collectives of one rank: kernels on a device, or ranges where it is the host that
// communicates, for a device or not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

// Rows by group, in the order of their start.
std::map<std::string, std::vector<std::size_t>> collectives_by_group(
    const trace::RankTimeline& timeline);

// What is known of the collective in a row.
struct CollectiveFacts {
  std::string name;         // "allreduce"
  std::int64_t bytes = -1;  // of one rank's input; below 0: not known
  std::int64_t bucket = -1;
  std::int64_t sequence = -1;
  int group_size = 0;
};

CollectiveFacts collective_facts(const trace::RankTimeline& timeline, std::size_t row);

// "allreduce", of ncclDevKernel_AllReduce_Sum_f32_RING_LL and
// ncclKernel_AllReduce_RING_LL_Sum_float as of gloo:all_reduce; of a send and of a receive the
// same. Empty: the name does not say.
std::string_view operation_in_name(std::string_view name);

}  // namespace sidestream::analysis

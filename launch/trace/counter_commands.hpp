// The commands of Nsight Compute that read the counters of a run's longest kernels.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiling/advice/facts.hpp"
#include "profiling/analysis/analysis.hpp"

namespace sidestream::launch {

// Of the first `most` entries of a report's top_ops; none of host ranks.
std::vector<std::string> counter_commands(const nlohmann::ordered_json& top_ops, std::size_t most,
                                          const analysis::Analysis& analysis,
                                          const advice::Facts& facts);

}  // namespace sidestream::launch

// What bounds the run: one word, the shares it rests on, and how sure it is.
//
// Of an average step: io is idle while waiting for data; comm is exposed
// communication and idle inside collectives; computing is compute and exposed copies; cpu
// is all other idle time. The largest is the verdict. Proof by experiment: a run with
// `--data synthetic` or `--fix-batch on` removes io, one rank alone removes comm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"
#include "profiling/statistics/bound.hpp"

namespace sidestream::analysis {

// Nothing without a step that has any length, and where the traces do not show the work, or not all
// of it.
std::optional<statistics::Bound> find_verdict(const std::vector<RankView>& ranks);

// Nobody can say whether those communicate; everywhere they count as computing.
bool has_nameless_kernels(const std::vector<RankView>& ranks);

// Of the steps, more than can be left aside is in CUDA graphs whose kernels were not recorded: it
// counts as idle, and may be anything.
bool has_hidden_kernels(const std::vector<RankView>& ranks);
inline constexpr const char* kNeedsGraphNodes =
    "the kernels inside CUDA graphs (nsys profile --cuda-graph-trace=node)";

// What traces without a verdict lack.
std::string verdict_needs(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis

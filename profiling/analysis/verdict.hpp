// What bounds the run: one word, and the shares it rests on.
//
// Of an average step: io is idle while waiting for data; comm is exposed
// communication and idle inside collectives; gpu is compute and exposed copies; cpu
// is all other idle time. The largest is the verdict. Proof by experiment: a run with
// `--data synthetic` or `--fix-batch on` removes io, one rank alone removes comm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct Verdict {
  std::string word;                           // "io", "cpu", "gpu", "comm"
  double io = 0, cpu = 0, gpu = 0, comm = 0;  // shares of a step; together 1
};

// Nothing without a step that has any length.
std::optional<Verdict> find_verdict(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis

// What bounds a run, of the account of its phases: one word and the shares that it rests on.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "profiling/record/phase_account.hpp"

namespace sidestream::record {

// Shares of an average step, together 1. The words are those of a report of traces: io (waiting for
// data), comm (collectives that nothing hides), gpu (computing, on whatever computes), cpu (all
// else).
struct PhaseVerdict {
  std::string word;  // the largest
  double io = 0, cpu = 0, gpu = 0, comm = 0;
  std::int64_t steps = 0;
};

// Over the steps of all ranks. Nothing without a step.
std::optional<PhaseVerdict> find_verdict(std::span<const PhaseTotals> ranks);

// "computing 81 %, collectives 12 %, data 2 %, other work of the host 5 %: bound by computing"
std::string describe(const PhaseVerdict& verdict);

}  // namespace sidestream::record

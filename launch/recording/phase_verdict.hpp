// What bounds a run, over the steps of all its ranks: at the end of every run, recorded or not.
#pragma once

#include <optional>

#include "comm/communicator.hpp"
#include "profiling/record/verdict.hpp"

namespace sidestream::launch {

// Collective. Nothing when no rank has counted a step: a tool took the recorder's place, or the
// program was built without NVTX.
std::optional<record::PhaseVerdict> agreed_verdict(comm::Communicator& communicator,
                                                   const record::PhaseTotals& mine);

}  // namespace sidestream::launch

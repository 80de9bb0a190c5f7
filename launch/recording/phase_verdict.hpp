// What bounds a run and which rank is late, over all its ranks: at the end of every run that is
// long enough, recorded or not.
#pragma once

#include <optional>

#include "comm/communicator.hpp"
#include "profiling/record/recorder.hpp"
#include "profiling/record/verdict.hpp"

namespace sidestream::launch {

// processor_wait: of this rank. Collective; the verdict is rank 0's, the others have none. Nothing
// either after fewer than 20 steps beside the first (that were counted or not), when a tool took
// the recorder's place, or when the program was built without NVTX.
std::optional<record::RunVerdict> verdict_of_all_ranks(comm::Communicator& communicator,
                                                       const record::Recorder& recorder,
                                                       std::optional<double> processor_wait);

// Of this rank alone, when the others can no longer be asked: what bounds it. Nothing where the
// above says nothing.
std::optional<record::RunVerdict> verdict_of_rank_alone(int rank, const record::Recorder& recorder);

}  // namespace sidestream::launch

// What our ranges say about a collective, told of the kernel that carries it out.
//
// NCCL's kernels know neither bytes nor buckets. A range of ours begins just before the call that
// launches the kernel, and ends when the kernel has.
#pragma once

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// Gives every collective kernel that the file says nothing about the detail of the newest range of
// ours, of the same collective, that was open when the kernel was launched. Kernels without a
// launch on record, and those of CUDA graphs, whose ranges were told at capture, stay as they are.
void link_collectives(RankTimeline& timeline);

}  // namespace sidestream::trace

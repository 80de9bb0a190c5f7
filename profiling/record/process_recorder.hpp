// The recorder that NVTX tells about the ranges of this process.
#pragma once

#include "profiling/record/recorder.hpp"

namespace sidestream::record {

// NVTX calls back without a context, so there is one a process, made at first use. It is never
// destroyed: threads may still open ranges while the process ends.
Recorder& process_recorder();

// True once NVTX tells this recorder: the program links sidestream::nvtx_injection, was built with
// NVTX, and no tool (nsys) took its place. Opens a range to find out.
bool process_recorder_is_attached();

namespace detail {
void note_attached() noexcept;
}

}  // namespace sidestream::record

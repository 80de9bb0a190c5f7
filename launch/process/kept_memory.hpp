// Memory that steps free and want again.
#pragma once

namespace sidestream::launch {

// Gives back what is free now, and keeps what is freed from here on: activations of tens of MB
// otherwise come from mmap, and are faulted in, each step. For just before the first step: what
// set-up freed is not needed again.
void keep_freed_memory();

}  // namespace sidestream::launch

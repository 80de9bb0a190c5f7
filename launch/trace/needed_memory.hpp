// Whether the traces of a run fit into memory: a report has the events of all of them at once, and
// would come to its end only after minutes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/host_memory.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::launch {

// What to say before these are read, and what to do about it; nothing where the least that such
// files take is free, or where nobody knows what is free. Files that are gone count as empty, and
// so do exports of Nsight Systems.
std::optional<std::string> memory_warning(const std::vector<trace::TraceFile>& files,
                                          const core::HostMemory& memory);

}  // namespace sidestream::launch

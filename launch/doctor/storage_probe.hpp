// Writes to a folder as a run would, and leaves nothing there: the file has no name while it is
// written, so that not even a kill leaves it behind.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

struct ProbeSize {
  int syncs = 9;                              // small writes, each with an fsync
  std::size_t bytes = std::size_t{32} << 20;  // of the large one
};

// What goes wrong is in the facts. A folder that is not there yet would be made by a run: then the
// one that it would be made in is tried. Ends early when `stop` says so.
StorageFacts probe_storage(
    const std::filesystem::path& folder, const ProbeSize& size = {},
    const std::function<bool()>& stop = [] { return false; });

}  // namespace sidestream::launch::doctor

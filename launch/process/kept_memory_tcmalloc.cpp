// In glibc's heap a small block that outlives its neighbours splits the room that a large one had:
// what a profile collects makes each step take fresh memory. tcmalloc keeps pages of small blocks
// apart.
#include <gperftools/malloc_extension.h>

#include "launch/process/kept_memory.hpp"

namespace sidestream::launch {

void keep_freed_memory() {
  MallocExtension* allocator = MallocExtension::instance();
  allocator->ReleaseFreeMemory();
  allocator->SetMemoryReleaseRate(0);
}

}  // namespace sidestream::launch

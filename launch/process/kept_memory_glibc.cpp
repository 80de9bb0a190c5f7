#include <malloc.h>

#include "launch/process/kept_memory.hpp"

namespace sidestream::launch {

void keep_freed_memory() {
  malloc_trim(0);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace sidestream::launch

// The processors that a thread may use, of any number: cpu_set_t alone ends at 1024.
#pragma once

#include <vector>

namespace sidestream::core {

// Of the calling thread, ascending; none where the system does not say.
std::vector<int> allowed_processors();

// The cores that these are threads of, as mpirun counts them; 1 or more.
int allowed_cores();

// Restricts the calling thread, and those that it starts later, to `processors`. False where that
// is not allowed. Throws std::bad_alloc.
bool restrict_to(const std::vector<int>& processors);

}  // namespace sidestream::core

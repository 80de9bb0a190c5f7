// Putting a finished folder where an old one is, on any file system.
#pragma once

#include <filesystem>

namespace sidestream::core {

// `target` is called `aside`, `fresh` is called `target`, and what is aside is removed: where names
// cannot be exchanged (exchange_names() of file.hpp). A kill between the two leaves the old folder
// aside. A target that is gone is nothing to replace, and an old one that cannot be removed stays
// aside. Throws filesystem_error that names target and fresh; target has its old content again, and
// where that fails, the error names target and aside.
void replace_in_two_steps(const std::filesystem::path& fresh, const std::filesystem::path& target,
                          const std::filesystem::path& aside);

}  // namespace sidestream::core

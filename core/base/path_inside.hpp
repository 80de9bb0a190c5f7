#pragma once

#include <algorithm>
#include <filesystem>

namespace sidestream::core {

// Whether a place is the folder or lies in it, by their names alone: both canonical, or both as
// they are written.
inline bool is_inside(const std::filesystem::path& place, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), place.begin(), place.end()).first ==
         folder.end();
}

}  // namespace sidestream::core

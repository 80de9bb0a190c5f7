// Which of many tensors are on the host at the same time: a copy of all of a large model would be
// gigabytes for each rank of a node.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sidestream::parallel {

// Tensors begin .. end - 1.
struct CopyGroup {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// bytes: what each tensor takes on the host, 0 where it lies there already. Groups follow one
// another and take most_bytes together, or are a single tensor that takes more.
inline std::vector<CopyGroup> copy_groups(std::span<const std::size_t> bytes,
                                          std::size_t most_bytes) {
  std::vector<CopyGroup> groups;
  std::size_t in_group = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (groups.empty() || in_group + bytes[i] > most_bytes) {
      groups.push_back({i, i});
      in_group = 0;
    }
    in_group += bytes[i];
    groups.back().end = i + 1;
  }
  return groups;
}

}  // namespace sidestream::parallel

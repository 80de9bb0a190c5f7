// How a number of elements is divided among ranks: in rank order, sizes that differ by one at most.
#pragma once

#include <algorithm>
#include <cstddef>

namespace sidestream::comm {

struct Slice {
  std::size_t begin = 0;
  std::size_t count = 0;
};

class Slicing {
 public:
  Slicing(std::size_t count, int parts) : count_(count), parts_(static_cast<std::size_t>(parts)) {}

  Slice of(int part) const noexcept {
    const std::size_t begin = begin_of(static_cast<std::size_t>(part));
    return {begin, begin_of(static_cast<std::size_t>(part) + 1) - begin};
  }

 private:
  std::size_t begin_of(std::size_t part) const noexcept {
    return part * (count_ / parts_) + std::min(part, count_ % parts_);
  }

  std::size_t count_;
  std::size_t parts_;
};

}  // namespace sidestream::comm

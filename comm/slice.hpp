// How a number of elements is divided among ranks: in rank order, in whole cache lines as far as
// there are any.
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
  static constexpr std::size_t kUnit = 64;  // elements: at least a cache line of any type

  std::size_t begin_of(std::size_t part) const noexcept {
    const std::size_t units = (count_ + kUnit - 1) / kUnit;
    return std::min(count_, kUnit * (part * (units / parts_) + std::min(part, units % parts_)));
  }

  std::size_t count_;
  std::size_t parts_;
};

}  // namespace sidestream::comm

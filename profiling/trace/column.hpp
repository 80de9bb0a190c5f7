// A column of the store: grows in blocks, so that appending never copies what is there and a column
// never holds much more memory than its rows need.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace sidestream::trace {

template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void push_back(const T& value) {
    if ((size_ & kMask) == 0) blocks_.push_back(std::make_unique_for_overwrite<T[]>(kBlock));
    blocks_.back()[size_ & kMask] = value;
    ++size_;
  }

  const T& operator[](std::size_t row) const { return blocks_[row >> kShift][row & kMask]; }
  T& operator[](std::size_t row) { return blocks_[row >> kShift][row & kMask]; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  static constexpr std::size_t kShift = 12;
  static constexpr std::size_t kBlock = std::size_t{1} << kShift;
  static constexpr std::size_t kMask = kBlock - 1;

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace sidestream::trace

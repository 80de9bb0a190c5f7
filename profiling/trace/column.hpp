// A column of the store: grows in blocks, so that a column never holds much more memory than its
// rows need. Only the first block is copied, while it grows up to the size of the others: a run of
// many ranks has thousands of columns with a handful of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sidestream::trace {

template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Ends references to rows of a column that has but one block.
  void push_back(T value) {
    if (size_ == room_) grow();
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
  static constexpr std::size_t kFirstRows = 16;

  void grow() {
    const bool of_first = room_ < kBlock;
    const std::size_t rows = !of_first ? kBlock : room_ == 0 ? kFirstRows : room_ * 2;
    auto block = std::make_unique_for_overwrite<T[]>(rows);
    if (of_first && size_ > 0) {
      std::copy_n(blocks_.front().get(), size_, block.get());
      blocks_.front() = std::move(block);
    } else {
      blocks_.push_back(std::move(block));
    }
    room_ = of_first ? rows : room_ + rows;
  }

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;  // rows
};

}  // namespace sidestream::trace

// Zero-filled pages of this process, 4096-aligned: what allocate() returns where no window is
// possible.
#pragma once

#include <cstddef>

namespace sidestream::comm {

class PageBlock {
 public:
  explicit PageBlock(std::size_t bytes);  // throws MemoryError
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;
  PageBlock(const PageBlock&) = delete;
  PageBlock& operator=(const PageBlock&) = delete;
  ~PageBlock();

  std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace sidestream::comm

#include "comm/page_block.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::comm {

PageBlock::PageBlock(std::size_t bytes) : mapped_bytes_(std::max<std::size_t>(bytes, 1)) {
  void* address =
      ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    throw core::MemoryError("no memory for a buffer of " + std::to_string(bytes) + " bytes");
  data_ = static_cast<std::byte*>(address);
}

PageBlock::PageBlock(PageBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

PageBlock::~PageBlock() {
  if (data_ != nullptr) ::munmap(data_, mapped_bytes_);
}

}  // namespace sidestream::comm

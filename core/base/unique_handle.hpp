// One move-only owner for every kind of foreign handle: file descriptors, MPI communicators, CUDA
// streams.
//
//   struct FdTraits { using Value = int; static constexpr int null = -1; static void close(int fd)
//   noexcept; }; using UniqueFd = UniqueHandle<FdTraits>;
#pragma once

#include <utility>

namespace sidestream::core {

template <typename Traits>
class UniqueHandle {
 public:
  using Value = typename Traits::Value;

  UniqueHandle() = default;
  explicit UniqueHandle(Value value) noexcept : value_(value) {}
  UniqueHandle(UniqueHandle&& other) noexcept : value_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Value get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ != Traits::null; }
  Value release() noexcept { return std::exchange(value_, Traits::null); }
  void reset(Value value = Traits::null) noexcept {
    const Value old = std::exchange(value_, value);
    if (old != Traits::null) Traits::close(old);
  }

 private:
  Value value_ = Traits::null;
};

}  // namespace sidestream::core

// Values that repeat, each once: rows hold a number. What describes a launch or a call is the same
// for thousands of events.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "profiling/trace/name_table.hpp"

namespace sidestream::trace {

// T is told apart by its bytes, so it has none between its members.
template <typename T>
class Distinct {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::uint32_t intern(const T& value) {
    return bytes_.intern({reinterpret_cast<const char*>(&value), sizeof(T)}) - kFirst;
  }

  T operator[](std::uint32_t number) const {
    T value;
    std::memcpy(&value, bytes_[number + kFirst].data(), sizeof(T));
    return value;
  }
  std::size_t size() const noexcept { return bytes_.size() - kFirst; }

 private:
  static constexpr std::uint32_t kFirst = kNoName + 1;  // the table begins with the empty text

  NameTable bytes_;
};

}  // namespace sidestream::trace

// Values that repeat, each once: rows hold a number. What describes a launch or a call is the same
// for thousands of events.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "profiling/trace/column.hpp"
#include "profiling/trace/name_table.hpp"

namespace sidestream::trace {

// T is told apart by its bytes, so it has none between its members.
template <typename T>
class Distinct {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::uint32_t intern(const T& value) {
    if (!values_.empty() && bytes_of(values_[last_]) == bytes_of(value)) return last_;
    const std::uint64_t hash = hash_of(bytes_of(value));
    for (auto [at, end] = numbers_.equal_range(hash); at != end; ++at) {
      if (bytes_of(values_[at->second]) == bytes_of(value)) return last_ = at->second;
    }
    last_ = static_cast<std::uint32_t>(values_.size());
    values_.push_back(value);
    numbers_.emplace(hash, last_);
    return last_;
  }

  const T& operator[](std::uint32_t number) const { return values_[number]; }
  std::size_t size() const noexcept { return values_.size(); }

 private:
  static std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
  }

  Column<T> values_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> numbers_;
  std::uint32_t last_ = 0;
};

}  // namespace sidestream::trace

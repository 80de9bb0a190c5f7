// Whole numbers of JSON that count something. The library's conversion alone would cut and turn
// round what does not fit: 4.7 is 4 by it, and 4294967297 an int of 1.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json_fault.hpp"

namespace sidestream::core {

// The number at `key`, from 0 to what a T can hold. Throws nlohmann::json::exception where nothing
// has that key, and fault(expected, found), an error of the caller's, for any other value.
template <std::integral T, typename Fault>
T count_at(const nlohmann::json& object, const char* key, const Fault& fault) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  const nlohmann::json& value = object.at(key);
  const bool is_count = value.is_number_unsigned() ||
                        (value.is_number_integer() && value.template get<std::int64_t>() >= 0);
  if (is_count && value.template get<std::uint64_t>() <= kMost) return value.template get<T>();
  throw fault(std::string("a whole number from 0 to ") + std::to_string(kMost) + " as " + key,
              value_words(value));
}

}  // namespace sidestream::core

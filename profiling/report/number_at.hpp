// A figure of a JSON object.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace sidestream::report {

// Nothing where the key is missing, null or no number.
template <typename Json>
std::optional<double> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->template get<double>();
}

}  // namespace sidestream::report

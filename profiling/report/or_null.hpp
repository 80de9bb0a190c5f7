// A figure as JSON: null where it is not known.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace sidestream::report {

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace sidestream::report

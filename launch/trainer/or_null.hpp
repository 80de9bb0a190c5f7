// A figure of run.json: null where it is not known.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace sidestream::launch {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace sidestream::launch

// A text as JSON writes it, with its quotes; bytes that are no UTF-8 become question marks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sidestream::launch {

inline std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sidestream::launch

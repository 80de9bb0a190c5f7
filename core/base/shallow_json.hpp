// JSON that somebody else may have written. What walks through a document (a printer above all)
// calls itself for each level, and would run out of stack: a deep one is refused while it is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/base/error.hpp"

namespace sidestream::core {

// "at most 32 nested levels"; the caller adds the file.
class NestingError : public Error {
 public:
  NestingError();
};

// Throws NestingError, and nlohmann::json::parse_error for what is no JSON.
nlohmann::json parse_shallow_json(std::string_view text);

// Null for what is no JSON, and for what is deep: lines of a file that goes on behind them.
nlohmann::json shallow_json_or_null(std::string_view text);

// As parse_shallow_json, of a file. Throws Error too, with the system's text, or where it has more
// than limit_bytes.
nlohmann::json read_shallow_json(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace sidestream::core

// A JSON file that cannot be used, in words: where it is broken, what should stand there and what
// does, instead of the library's own text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/number_bounds.hpp"

namespace sidestream::core {

struct JsonPlace {
  std::string file;
  std::optional<std::uint64_t> offset_bytes = {};  // of the text, where it is a part of the file
  std::string expected;                            // "the record of a run"
};

// `text` is what was parsed. One that parses and lacks something is wrong where it begins.
FileFault json_fault(const JsonPlace& place, std::string_view text,
                     const nlohmann::json::exception& error);

// A value as a message shows it: cut where it is long, of an object or array its type.
std::string value_words(const nlohmann::json& value);

// The number at `key`. Throws DataError where there is none, or one beyond its bounds.
double number_within(const nlohmann::json& object, const char* key, const NumberBounds& bounds,
                     const JsonPlace& place);

// The same, and nothing where it is missing or null.
std::optional<double> maybe_number_within(const nlohmann::json& object, const char* key,
                                          const NumberBounds& bounds, const JsonPlace& place);

// What the library says, without the name of its class: for what was parsed elsewhere.
std::string json_words(const nlohmann::json::exception& error);

}  // namespace sidestream::core

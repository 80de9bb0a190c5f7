// A file of JSON objects, one a line, that is only ever appended to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/reporting/appended_file.hpp"

namespace sidestream::launch {

// With its line break. Bytes that are no UTF-8 are replaced.
std::string json_line(const nlohmann::ordered_json& object);

// On disk on return, unless the file has trouble().
void append_json_line(AppendedFile& file, const nlohmann::ordered_json& object);

// The whole file, however long it is: a run may take millions of steps. Throws Error for a file
// that cannot be read.
std::string read_log(const std::filesystem::path& path);

struct JsonLine {
  nlohmann::json object;           // null: this line is no object, torn by a kill or damaged
  std::uint64_t offset_bytes = 0;  // in the file
};

// Every line but a last one that is not complete, one after the other, so that a file of months
// does not have to lie in memory. Throws Error for a file that cannot be read; nothing where there
// is none.
void visit_json_lines(const std::filesystem::path& path,
                      const std::function<void(JsonLine)>& visit);
// All of them at once.
std::vector<JsonLine> read_json_lines(const std::filesystem::path& path);

}  // namespace sidestream::launch

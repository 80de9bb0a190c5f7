// A file of JSON objects, one a line, that is only ever appended to.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace sidestream::launch {

// Makes the file where there is none; the line is durable on return, and a kill tears at most it: a
// torn last line is closed first, so that it spoils no other. Throws Error.
void append_json_line(const std::filesystem::path& path, const nlohmann::ordered_json& object);

// Every line that is an object; others, torn by kills, are left out. Nothing where there is no
// file. Throws Error for a file that cannot be read.
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path);

}  // namespace sidestream::launch

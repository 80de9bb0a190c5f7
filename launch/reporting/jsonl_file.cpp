#include "launch/reporting/jsonl_file.hpp"

#include <limits>
#include <sstream>
#include <string>

#include "core/base/file.hpp"

namespace sidestream::launch {

std::string json_line(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void append_json_line(AppendedFile& file, const nlohmann::ordered_json& object) {
  file.append(json_line(object), AppendedFile::Durability::kOnDisk);
}

std::string read_log(const std::filesystem::path& path) {
  return core::read_file(path, std::numeric_limits<std::size_t>::max());
}

std::vector<JsonLine> read_json_lines(const std::filesystem::path& path) {
  std::vector<JsonLine> found;
  if (!core::is_there(path)) return found;
  std::istringstream lines(read_log(path));
  std::uint64_t offset_bytes = 0;
  for (std::string line; std::getline(lines, line); offset_bytes += line.size() + 1) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      if (lines.eof()) break;  // somebody is still writing it
      object = nullptr;
    }
    found.push_back({std::move(object), offset_bytes});
  }
  return found;
}

}  // namespace sidestream::launch

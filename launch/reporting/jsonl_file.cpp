#include "launch/reporting/jsonl_file.hpp"

#include <limits>
#include <sstream>
#include <string>

#include "core/base/file.hpp"

namespace sidestream::launch {

void append_json_line(AppendedFile& file, const nlohmann::ordered_json& object) {
  file.append(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
              AppendedFile::Durability::kOnDisk);
}

std::string read_log(const std::filesystem::path& path) {
  return core::read_file(path, std::numeric_limits<std::size_t>::max());
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> objects;
  if (!std::filesystem::exists(path)) return objects;
  std::istringstream lines(read_log(path));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace sidestream::launch

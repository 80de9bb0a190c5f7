#include "launch/reporting/jsonl_file.hpp"

#include <limits>
#include <sstream>
#include <string>

#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

// Of a log: a run may take millions of steps.
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

void append_json_line(AppendedFile& file, const nlohmann::ordered_json& object) {
  file.append(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
              AppendedFile::Durability::kOnDisk);
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> objects;
  if (!std::filesystem::exists(path)) return objects;
  std::istringstream lines(core::read_file(path, kNoLimit));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace sidestream::launch

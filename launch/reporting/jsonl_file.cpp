#include "launch/reporting/jsonl_file.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/file.hpp"
#include "core/base/shallow_json.hpp"

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

void visit_json_lines(const std::filesystem::path& path,
                      const std::function<void(JsonLine)>& visit) {
  if (!core::is_there(path)) return;
  enum class End { kWritten, kMissing };
  std::string line;
  std::uint64_t offset_bytes = 0;
  const auto end_line = [&](End end) {
    nlohmann::json object = core::shallow_json_or_null(line);
    if (!object.is_object()) object = nullptr;
    const bool is_being_written = object.is_null() && end == End::kMissing;
    if (!is_being_written) visit({std::move(object), offset_bytes});
    offset_bytes += line.size() + 1;
    line.clear();
  };
  core::read_in_pieces(path, [&](std::span<const std::byte> piece) {
    std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      line += text.substr(0, end);
      end_line(End::kWritten);
    }
    line += text;
  });
  if (!line.empty()) end_line(End::kMissing);
}

std::vector<JsonLine> read_json_lines(const std::filesystem::path& path) {
  std::vector<JsonLine> found;
  visit_json_lines(path, [&](JsonLine line) { found.push_back(std::move(line)); });
  return found;
}

}  // namespace sidestream::launch

#include "core/checkpoint/model_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/base/error.hpp"

namespace sidestream::checkpoint {
namespace {

using nlohmann::json;

// {"a": {"b": 1}} becomes {"/a/b": 1}.
json flat(const json& fields) { return fields.empty() ? json::object() : fields.flatten(); }

std::string value_or_absent(const json& fields, const std::string& key) {
  return fields.contains(key) ? fields.at(key).dump() : "absent";
}

}  // namespace

std::vector<std::string> differing_fields(const json& stored, const json& configured) {
  const json left = flat(stored);
  const json right = flat(configured);
  std::set<std::string> keys;
  for (const auto& [key, value] : left.items()) keys.insert(key);
  for (const auto& [key, value] : right.items()) keys.insert(key);
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    if (left.contains(key) && right.contains(key) && left.at(key) == right.at(key)) continue;
    lines.push_back(fmt::format("{}: {} in the checkpoint, {} configured", key.substr(1),
                                value_or_absent(left, key), value_or_absent(right, key)));
  }
  return lines;
}

void require_same_model(const json& stored, const json& configured,
                        const std::filesystem::path& folder) {
  constexpr std::size_t kMostLines = 12;  // a module of one's own may have thousands
  auto lines = differing_fields(stored, configured);
  if (lines.empty()) return;
  if (lines.size() > kMostLines) {
    const std::size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(fmt::format("and {} more", more));
  }
  throw core::CheckpointError(
      fmt::format("{} is a checkpoint of another model: {}. Set these as in the checkpoint, "
                  "or use another run directory.",
                  folder.string(), fmt::join(lines, "; ")));
}

}  // namespace sidestream::checkpoint

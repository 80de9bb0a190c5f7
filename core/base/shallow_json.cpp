#include "core/base/shallow_json.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/file.hpp"

namespace sidestream::core {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;

}  // namespace

NestingError::NestingError() : Error("at most " + std::to_string(kMaxDepth) + " nested levels") {}

json parse_shallow_json(std::string_view text) {
  const auto check_depth = [](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) throw NestingError();
    return true;
  };
  return json::parse(text, check_depth);
}

json shallow_json_or_null(std::string_view text) {
  try {
    return parse_shallow_json(text);
  } catch (const NestingError&) {
    return nullptr;
  } catch (const json::exception&) {
    return nullptr;
  }
}

json read_shallow_json(const std::filesystem::path& path, std::size_t limit_bytes) {
  return parse_shallow_json(read_file(path, limit_bytes));
}

}  // namespace sidestream::core

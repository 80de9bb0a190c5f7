#include "core/base/json_fault.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/printable.hpp"

namespace sidestream::core {
namespace {

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 20;
  std::string part(text.substr(0, std::min({kMost, text.size(), text.find('\n')})));
  for (char& one : part) {
    if (static_cast<unsigned char>(one) < 0x20 || static_cast<unsigned char>(one) >= 0x7F)
      one = '?';
  }
  return "'" + part + "'";
}

}  // namespace

// "[json.exception.out_of_range.403] key 'machine' not found"
std::string json_words(const nlohmann::json::exception& error) {
  const std::string_view what = error.what();
  const std::size_t end = what.find("] ");
  return std::string(what.starts_with('[') && end != std::string_view::npos ? what.substr(end + 2)
                                                                            : what);
}

double number_within(const nlohmann::json& object, const char* key, const NumberBounds& bounds,
                     const JsonPlace& place) {
  const auto found = object.find(key);
  const bool is_number = found != object.end() && found->is_number();
  const double value = is_number ? found->get<double>() : 0;
  if (is_number && value >= bounds.least && value <= bounds.most) return value;
  constexpr std::size_t kMostShown = 40;
  std::ostringstream expected;
  expected << place.expected << " with a number from " << bounds.least << " to " << bounds.most
           << " as \"" << key << '"';
  throw DataError(
      FileFault{place.file, place.offset_bytes, expected.str(),
                found == object.end() ? "none" : printable(found->dump().substr(0, kMostShown))});
}

FileFault json_fault(const JsonPlace& place, std::string_view text,
                     const nlohmann::json::exception& error) {
  const auto* broken = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (broken == nullptr) return {place.file, place.offset_bytes, place.expected, json_words(error)};
  const std::size_t at = broken->byte == 0 ? 0 : broken->byte - 1;  // counted from 1
  return {place.file, place.offset_bytes.value_or(0) + at, place.expected,
          at >= text.size() ? "its end, too early" : shown(text.substr(at))};
}

}  // namespace sidestream::core

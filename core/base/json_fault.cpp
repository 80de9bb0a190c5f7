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

// What stands where the library looked, by the numbers of its errors.
std::string found_words(const nlohmann::json::exception& error) {
  constexpr int kOtherType = 302, kAtOfOtherType = 304, kIndexOfOtherType = 305, kNoKey = 403;
  const std::string words = json_words(error);
  const std::string last = words.substr(words.rfind(' ') + 1);
  switch (error.id) {
    case kNoKey:  // "key 'machine' not found"
      return "no " + words.substr(words.find('\''), words.rfind('\'') + 1 - words.find('\''));
    case kOtherType:
      return "a value whose " + words;  // "type must be string, but is number"
    case kAtOfOtherType:
    case kIndexOfOtherType:
      return "a value of type " + last +
             " where an object belongs";  // "cannot use at() with array"
    default:
      return words;
  }
}

}  // namespace

// "[json.exception.out_of_range.403] key 'machine' not found"
std::string json_words(const nlohmann::json::exception& error) {
  const std::string_view what = error.what();
  const std::size_t end = what.find("] ");
  return std::string(what.starts_with('[') && end != std::string_view::npos ? what.substr(end + 2)
                                                                            : what);
}

// What is nested may be so deep that the library's dump() runs out of stack.
std::string value_words(const nlohmann::json& value) {
  constexpr std::size_t kMostShown = 40;
  if (value.is_structured()) return std::string("a value of type ") + value.type_name();
  return printable(value.dump().substr(0, kMostShown));
}

double number_within(const nlohmann::json& object, const char* key, const NumberBounds& bounds,
                     const JsonPlace& place) {
  const auto found = object.find(key);
  const bool is_there = object.is_object() && found != object.end();
  if (is_there && found->is_number() && bounds.hold(found->get<double>()))
    return found->get<double>();
  std::ostringstream expected;
  expected << place.expected << " with a number from " << bounds.least << " to " << bounds.most
           << " as \"" << key << '"';
  const std::string instead = object.is_object() ? "none" : value_words(object);
  throw DataError(FileFault{place.file, place.offset_bytes, expected.str(),
                            is_there ? value_words(*found) : instead});
}

std::optional<double> maybe_number_within(const nlohmann::json& object, const char* key,
                                          const NumberBounds& bounds, const JsonPlace& place) {
  if (!object.contains(key) || object[key].is_null()) return std::nullopt;
  return number_within(object, key, bounds, place);
}

FileFault json_fault(const JsonPlace& place, std::string_view text,
                     const nlohmann::json::exception& error) {
  const auto* broken = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (broken == nullptr)
    return {place.file, place.offset_bytes, place.expected, found_words(error)};
  const std::size_t at = broken->byte == 0 ? 0 : broken->byte - 1;  // counted from 1
  return {place.file, place.offset_bytes.value_or(0) + at, place.expected,
          at >= text.size() ? "its end, too early" : shown(text.substr(at))};
}

}  // namespace sidestream::core

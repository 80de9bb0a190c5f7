#include "launch/options/value_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

template <typename T>
std::optional<T> whole_text_as(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of what is written like a whole number and still does not fit, the end is of interest, too.
bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::string range_text(IntegerRange range, std::string_view found) {
  if (range.max == std::numeric_limits<std::int64_t>::max() && !is_whole_number(found))
    return fmt::format("{} or more", range.min);
  return fmt::format("from {} to {}", range.min, range.max);
}

std::string range_text(const NumberRange& range) {
  const bool open = range.min_bound == Bound::kExcluded;
  if (range.max == std::numeric_limits<double>::max()) {
    return open ? "above " + number_text(range.min) : number_text(range.min) + " or more";
  }
  return fmt::format("{} {} {} {}", open ? "above" : "from", number_text(range.min),
                     range.max_bound == Bound::kExcluded ? "to below" : "to",
                     number_text(range.max));
}

bool contains(const NumberRange& range, double value) {
  const bool above = range.min_bound == Bound::kExcluded ? value > range.min : value >= range.min;
  const bool below = range.max_bound == Bound::kExcluded ? value < range.max : value <= range.max;
  return above && below;
}

[[noreturn]] void refuse_value(std::string_view words, const std::string& numbers,
                               std::string_view text) {
  throw core::ConfigError(fmt::format("expected {}{}{}, found '{}'", words,
                                      words.empty() ? "" : " or ", numbers, text));
}

}  // namespace

std::int64_t parse_integer(std::string_view text, IntegerRange range, std::string_view words) {
  const std::optional<std::int64_t> value = whole_text_as<std::int64_t>(text);
  if (!value || *value < range.min || *value > range.max)
    refuse_value(words, "an integer, " + range_text(range, text), text);
  return *value;
}

double parse_number(std::string_view text, NumberRange range, std::string_view words) {
  const std::optional<double> value = whole_text_as<double>(text);
  if (!value || !std::isfinite(*value) || !contains(range, *value))
    refuse_value(words, "a number, " + range_text(range), text);
  return *value;
}

bool parse_on_off(std::string_view text) {
  if (text != "on" && text != "off") {
    throw core::ConfigError(fmt::format("expected on or off, found '{}'", text));
  }
  return text == "on";
}

std::size_t parse_choice(std::string_view text, std::span<const std::string> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw core::ConfigError(fmt::format("expected one of {}, found '{}'", list, text));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string number_text(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(std::begin(text), std::end(text), value);
  return std::string(text, end);
}

}  // namespace sidestream::launch

// Values of flags as text: strict conversions that say what was expected and what was found.
//
// The messages know no flag; whoever applies a value puts the origin in front ("--lr",
// "train.cfg:12: lr").
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace sidestream::launch {

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

enum class Bound { kIncluded, kExcluded };

struct NumberRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
  Bound min_bound = Bound::kIncluded;
  Bound max_bound = Bound::kIncluded;
};

// Decimal digits with an optional sign, nothing else. Throws ConfigError. `words`: what the flag
// takes beside numbers, for the message.
std::int64_t parse_integer(std::string_view text, IntegerRange range, std::string_view words = {});

// A finite decimal number ("0.1", "6e-4"). Throws ConfigError.
double parse_number(std::string_view text, NumberRange range, std::string_view words = {});

// Exactly "on" or "off". Throws ConfigError.
bool parse_on_off(std::string_view text);

// Index of text in names. Throws ConfigError that lists the names.
std::size_t parse_choice(std::string_view text, std::span<const std::string> names);

// The shortest text that reads back as the same number.
std::string number_text(double value);

}  // namespace sidestream::launch

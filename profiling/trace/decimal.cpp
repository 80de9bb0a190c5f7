#include "profiling/trace/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "profiling/trace/name_table.hpp"

namespace sidestream::trace {
namespace {

bool is_digit(char one) { return one >= '0' && one <= '9'; }

// Rare: only programs that print doubles write exponents.
std::optional<std::int64_t> from_exponent(std::string_view text) {
  long double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  value *= 1000;
  if (!(std::fabs(value) < 9.2e18L)) return std::nullopt;
  return std::llround(value);
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of_microseconds(std::string_view text) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 10 - 1;
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;
  if (at >= text.size() || !is_digit(text[at])) return std::nullopt;
  std::int64_t value = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (value > kLargest) return std::nullopt;
    value = value * 10 + (text[at] - '0');
  }
  bool round_up = false;
  int decimals = 0;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]); ++at, ++decimals) {
      if (decimals == 3) round_up = text[at] >= '5';
      if (decimals >= 3) continue;
      if (value > kLargest) return std::nullopt;
      value = value * 10 + (text[at] - '0');
    }
  }
  if (at < text.size()) return from_exponent(text);
  for (; decimals < 3; ++decimals) {
    if (value > kLargest) return std::nullopt;
    value *= 10;
  }
  value += round_up;
  return negative ? -value : value;
}

std::uint64_t identifier_of(std::string_view text) {
  if (text.empty()) return 0;
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc{} && result.ptr == text.data() + text.size()) return value;
  return hash_of(text) | (std::uint64_t{1} << 63);
}

std::int64_t integer_of(std::string_view text, std::int64_t otherwise) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return otherwise;
  const char* const end = text.data() + text.size();
  if (result.ptr == end) return value;
  const bool fraction = *result.ptr == '.' && std::all_of(result.ptr + 1, end, is_digit);
  return fraction ? value : otherwise;
}

}  // namespace sidestream::trace

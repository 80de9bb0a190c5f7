// Numbers of a trace as exact integers, straight from their text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sidestream::trace {

// Microseconds as decimal text to nanoseconds: "4458676522690.655" is 4458676522690655. Epoch
// microseconds with decimals do not fit a double. A fourth decimal rounds; an exponent is read as
// well. Nothing for what is no number or does not fit.
std::optional<std::int64_t> nanoseconds_of_microseconds(std::string_view text);

// An identifier of any size: 64 bits as they are, anything else (longer, negative, a word) as a
// hash with the top bit set. 0 for an empty text.
std::uint64_t identifier_of(std::string_view text);

// A whole number; a fraction is cut. `otherwise` for anything else.
std::int64_t integer_of(std::string_view text, std::int64_t otherwise);

}  // namespace sidestream::trace

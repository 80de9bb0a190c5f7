#include "profiling/trace/utf8_repair.hpp"

#include <cstddef>

namespace sidestream::trace {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
}

bool continues(unsigned byte) { return (byte & 0xC0u) == 0x80u; }

// Length of the valid sequence that starts at `at`; 0 when there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at), second = byte_at(text, at + 1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return continues(second) ? 2 : 0;
  const bool third = continues(byte_at(text, at + 2));
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return continues(second) && third && !overlong && !surrogate ? 3 : 0;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first == 0xF4 && second > 0x8F;
  const bool fourth = continues(byte_at(text, at + 3));
  return continues(second) && third && fourth && !overlong && !beyond ? 4 : 0;
}

bool is_control(char one) {
  return static_cast<unsigned char>(one) < 0x20 && one != '\n' && one != '\r' && one != '\t';
}

}  // namespace

std::string with_valid_utf8(std::string_view text) {
  std::string valid(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0 || is_control(text[at])) valid[at] = '?';
    at += length == 0 ? 1 : length;
  }
  return valid;
}

}  // namespace sidestream::trace

#include "profiling/report/printable.hpp"

namespace sidestream::report {
namespace {

// Length of the control character that begins here; 0: it is none. Those above DEL take two bytes
// of UTF-8, and some terminals obey them too.
std::size_t control_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7F) return 1;
  if (byte != 0xC2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xA0 ? 2 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t control = control_at(text, at);
    shown += control == 0 ? text[at] : '?';
    at += control == 0 ? 1 : control;
  }
  return shown;
}

}  // namespace sidestream::report

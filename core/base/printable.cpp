#include "core/base/printable.hpp"

namespace sidestream::core {
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

// Control characters that are in `kept` stay.
std::string shown(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t control = kept.find(text[at]) == kept.npos ? control_at(text, at) : 0;
    shown += control == 0 ? text[at] : '?';
    at += control == 0 ? 1 : control;
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, ""); }

std::string printable_lines(std::string_view text) { return shown(text, "\n\t"); }

}  // namespace sidestream::core

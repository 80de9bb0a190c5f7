#include "launch/generation/generated_text.hpp"

#include <utility>

#include "core/base/printable.hpp"

namespace sidestream::launch {

std::string GeneratedText::next(std::string_view bytes) {
  if (reader_ == Reader::kFile) return std::string(bytes);
  std::string text = std::exchange(held_, {}) + std::string(bytes);
  std::erase(text, '\r');
  constexpr char kFirstOfTwo = '\xC2';
  if (text.ends_with(kFirstOfTwo)) {
    held_ = kFirstOfTwo;
    text.pop_back();
  }
  return core::printable_lines(text);
}

}  // namespace sidestream::launch

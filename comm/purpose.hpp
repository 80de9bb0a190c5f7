// What a collective is for, in a word or two: exchanges carry payloads of any kind and length, and
// only their purpose tells one from another. The text is kept inside, because it lies in memory
// that processes share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace sidestream::comm {

class Purpose {
 public:
  static constexpr std::size_t kLongest = 24;

  constexpr Purpose() = default;
  // A literal; what is longer than kLongest is cut.
  constexpr Purpose(const char* text) {
    const std::string_view whole(text);
    std::copy_n(whole.begin(), std::min(whole.size(), kLongest), text_.begin());
  }

  constexpr std::string_view text() const noexcept {
    const auto end = std::find(text_.begin(), text_.end(), '\0');
    return {text_.data(), static_cast<std::size_t>(end - text_.begin())};
  }
  constexpr bool operator==(const Purpose&) const = default;

 private:
  std::array<char, kLongest> text_{};
};

}  // namespace sidestream::comm

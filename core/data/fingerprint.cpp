#include "core/data/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/base/random_bits.hpp"

namespace sidestream::data {
namespace {

class RunningHash {
 public:
  void add(std::uint64_t value) { bits_ = core::mix_bits(bits_, value); }
  std::string text() const {
    std::array<char, 16> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), bits_, 16).ptr;
    const std::string text(digits.data(), end);
    return std::string(digits.size() - text.size(), '0') + text;
  }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace

std::string fingerprint_of(const TokenStream& stream) {
  RunningHash hash;
  hash.add(stream.size());
  const std::uint64_t length = std::min(kFingerprintTokens, stream.size());
  const std::uint64_t last = stream.size() - length;  // where the last piece begins
  std::vector<std::int64_t> tokens(length);
  for (std::uint64_t place = 0; place < kFingerprintPlaces; ++place) {
    // Quotient and remainder apart: their product does not overflow.
    const std::uint64_t intervals = kFingerprintPlaces - 1;
    stream.read(last / intervals * place + last % intervals * place / intervals, tokens);
    for (const std::int64_t token : tokens) hash.add(static_cast<std::uint64_t>(token));
  }
  return hash.text();
}

}  // namespace sidestream::data

// Random damage to a valid file: the parser either finds it or gives entries that lie within the
// file.
#include <gtest/gtest.h>

#include <random>

#include "core/checkpoint/safetensors_header.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

std::string valid_file() {
  return file_with_header(
      R"({"__metadata__":{"format":"pt","n":"\u00e9"},"wte.weight":{"dtype":"F32","shape":[3,5],"data_offsets":[0,60]},)"
      R"("h.0.bias":{"dtype":"BF16","shape":[7],"data_offsets":[60,74]},"step":{"dtype":"I64","shape":[],)"
      R"("data_offsets":[74,82]},"none":{"dtype":"F16","shape":[0,9],"data_offsets":[82,82]}})",
      82);
}

// True when the file is accepted; every entry then has its bytes inside the file.
bool survives(const std::string& file) {
  try {
    // A copy of exactly this size: an address sanitizer sees any access beyond it.
    const std::vector<char> exact(file.begin(), file.end());
    const auto header = parse_safetensors_header(std::as_bytes(std::span(exact)), "fuzz");
    for (const TensorEntry& entry : header.tensors) {
      EXPECT_LE(entry.begin, entry.end);
      EXPECT_LE(header.data_offset + entry.end, file.size());
    }
    return true;
  } catch (const core::CheckpointError& error) {
    EXPECT_GT(std::string(error.what()).size(), 10u);
    return false;
  }
}

// Pieces of JSON that are more likely to hurt than random bytes.
const std::vector<std::string> kPieces{"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "-1",
                                       "1.5",
                                       "1e999",
                                       "null",
                                       "true",
                                       "18446744073709551615",
                                       "9223372036854775808",
                                       "4294967296",
                                       "\\u0000",
                                       "\xED\xA0\x80",
                                       "\xFF",
                                       "__metadata__",
                                       "data_offsets",
                                       "shape",
                                       "dtype",
                                       "F4",
                                       "[[[[[[[[",
                                       "{\"a\":",
                                       std::string(1, '\0'),
                                       "[0,0]",
                                       "\"F64\""};

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutate(std::string file) {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(file);
    // Most of the time the length field follows, so that the damage reaches the JSON parser.
    if (below(4) != 0 && file.size() >= 8)
      set_length(file, static_cast<std::uint64_t>(header_end(file)) - 8);
    return file;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  static std::size_t header_end(const std::string& file) {
    const std::size_t end = file.rfind('}');
    return end == std::string::npos || end < 8 ? file.size() : end + 1;
  }

  static void set_length(std::string& file, std::uint64_t length) {
    std::memcpy(file.data(), &length, sizeof length);
  }

  void change(std::string& file) {
    const std::size_t at = below(file.size());
    switch (below(6)) {
      case 0:
        if (!file.empty()) file[at] = static_cast<char>(random_());
        return;
      case 1:
        if (!file.empty()) file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        return;
      case 2:
        file.erase(at, 1 + below(20));
        return;
      case 3:
        file.insert(at, kPieces[below(kPieces.size())]);
        return;
      case 4:
        file.insert(at, file.substr(below(file.size()), below(60)));
        return;
      default:
        file.replace(at, std::min<std::size_t>(below(6), file.size() - at),
                     kPieces[below(kPieces.size())]);
    }
  }

  std::mt19937 random_;
};

TEST(SafetensorsFuzzTest, every_truncation_is_refused) {
  const std::string file = valid_file();
  ASSERT_TRUE(survives(file));

  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(survives(file.substr(0, length))) << "first " << length << " bytes";
  }
}

TEST(SafetensorsFuzzTest, every_flipped_bit_of_the_header_is_survived) {
  const std::string file = valid_file();
  for (std::size_t at = 0; at < file.size() - 82; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      survives(damaged);
    }
  }
}

TEST(SafetensorsFuzzTest, random_mutations_are_refused_or_consistent) {
  Mutator mutator(20240801);
  const std::string file = valid_file();
  int accepted = 0;
  constexpr int kMutations = 20000;

  for (int i = 0; i < kMutations; ++i) accepted += survives(mutator.mutate(file)) ? 1 : 0;

  // Both happen: otherwise the mutations would be too weak or too strong to test anything.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kMutations / 2);
}

}  // namespace
}  // namespace sidestream::checkpoint

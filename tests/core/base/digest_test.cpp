#include "core/base/digest.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/base/error.hpp"
#include "core/base/sha256.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

// FIPS 180-2, appendix B, and the empty string.
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kTwoBlocks =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
constexpr const char* kMillionA =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(DigestTest, sha256_hex_known_vectors) {
  EXPECT_EQ(sha256_hex(""), kEmpty);
  EXPECT_EQ(sha256_hex("abc"), kAbc);
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), kTwoBlocks);
}

TEST(DigestTest, update_in_pieces_equals_whole) {
  const std::string piece(997, 'a');
  Sha256 hash;

  std::size_t left = 1'000'000;
  while (left > 0) {
    const std::size_t n = std::min(left, piece.size());
    hash.update(std::as_bytes(std::span(piece.data(), n)));
    left -= n;
  }

  EXPECT_EQ(hash.finish(), kMillionA);
}

TEST(DigestTest, file_equals_its_content_also_when_empty) {
  const ScratchFolder folder;
  std::ofstream(folder / "abc") << "abc";
  std::ofstream(folder / "empty").flush();

  EXPECT_EQ(sha256_hex_of_file(folder / "abc"), kAbc);
  EXPECT_EQ(sha256_hex_of_file(folder / "empty"), kEmpty);
  EXPECT_THROW(sha256_hex_of_file(folder / "absent"), Error);
}

}  // namespace
}  // namespace sidestream::core

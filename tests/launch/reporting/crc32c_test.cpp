#include "launch/reporting/crc32c.hpp"

#include <gtest/gtest.h>

#include <string>

#include "launch/reporting/protobuf_encoder.hpp"

namespace sidestream::launch {
namespace {

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32cTest, crc32c_known_answers) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

// 150 as the documentation of the encoding has it.
TEST(ProtobufEncoderTest, varint_known_answer) {
  EXPECT_EQ(ProtobufEncoder().varint(1, 150).content(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufEncoder().bytes(2, "testing").content(), "\x12\x07testing");
  EXPECT_EQ(ProtobufEncoder().fixed32(2, 1.0f).content(), std::string("\x15\x00\x00\x80\x3f", 5));
}

}  // namespace
}  // namespace sidestream::launch

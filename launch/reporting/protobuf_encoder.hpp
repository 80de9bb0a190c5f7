// The few wire types of Protocol Buffers that an event needs, appended to a string.
// Format: https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sidestream::launch {

class ProtobufEncoder {
 public:
  ProtobufEncoder& varint(int field, std::uint64_t value) {
    key(field, 0);
    raw_varint(value);
    return *this;
  }
  ProtobufEncoder& fixed64(int field, double value) {
    key(field, 1);
    little_endian(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  ProtobufEncoder& bytes(int field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    content_ += value;
    return *this;
  }
  ProtobufEncoder& fixed32(int field, float value) {
    key(field, 5);
    little_endian(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  const std::string& content() const { return content_; }

 private:
  void key(int field, int wire_type) {
    raw_varint(static_cast<std::uint64_t>(field) << 3 | wire_type);
  }
  void raw_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) content_ += static_cast<char>(value | 0x80);
    content_ += static_cast<char>(value);
  }
  void little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) content_ += static_cast<char>(value >> (8 * i));
  }

  std::string content_;
};

}  // namespace sidestream::launch

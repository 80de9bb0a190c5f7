#include "core/data/byte_alphabet.hpp"

namespace sidestream::data {
namespace {

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<int, 256> code_points() {
  std::array<int, 256> points{};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    points[static_cast<std::size_t>(byte)] = stands_for_itself(byte) ? byte : next++;
  }
  return points;
}

}  // namespace

std::array<std::string, 256> byte_alphabet() {
  const auto points = code_points();
  std::array<std::string, 256> alphabet;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const int point = points[byte];
    if (point < 0x80) {
      alphabet[byte].assign(1, static_cast<char>(point));
    } else {
      alphabet[byte] = {static_cast<char>(0xC0 | (point >> 6)),
                        static_cast<char>(0x80 | (point & 0x3F))};
    }
  }
  return alphabet;
}

ByteSpelling::ByteSpelling() {
  byte_of_.fill(-1);
  const auto points = code_points();
  for (std::size_t byte = 0; byte < 256; ++byte) {
    byte_of_[static_cast<std::size_t>(points[byte])] = static_cast<int>(byte);
  }
}

std::optional<std::string> ByteSpelling::bytes_of(std::string_view spelled) const {
  std::string bytes;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    auto point = static_cast<std::size_t>(static_cast<unsigned char>(spelled[i]));
    if (point >= 0x80) {  // stand-ins have at most two UTF-8 bytes
      if ((point & 0xE0) != 0xC0 || i + 1 == spelled.size()) return std::nullopt;
      const auto low = static_cast<unsigned char>(spelled[++i]);
      if ((low & 0xC0) != 0x80) return std::nullopt;
      point = ((point & 0x1F) << 6) | (low & 0x3Fu);
    }
    if (point >= byte_of_.size() || byte_of_[point] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of_[point]);
  }
  return bytes;
}

}  // namespace sidestream::data

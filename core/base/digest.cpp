#include "core/base/digest.hpp"

#include <span>

#include "core/base/file.hpp"
#include "core/base/sha256.hpp"

namespace sidestream::core {
namespace {

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace

std::string sha256_hex(std::string_view content) {
  return sha256_hex(std::as_bytes(std::span(content)));
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  Sha256 hash;
  read_in_pieces(path, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.finish();
}

}  // namespace sidestream::core

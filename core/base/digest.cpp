#include "core/base/digest.hpp"

#include <openssl/evp.h>

#include <array>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::core {

std::string sha256_hex(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(content.data(), content.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw Error("OpenSSL could not compute a SHA-256 digest");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(std::size_t{2} * length);
  for (unsigned int i = 0; i < length; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return sha256_hex({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

}  // namespace sidestream::core

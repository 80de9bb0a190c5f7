// SHA-256 of bytes that arrive in pieces (OpenSSL): a file is hashed while it is written.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace sidestream::core {

class Sha256 {
 public:
  // Throws Error when OpenSSL has no SHA-256.
  Sha256();

  void update(std::span<const std::byte> bytes);

  // 64 lower-case hexadecimal digits of everything so far. The object takes no more bytes
  // afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};

}  // namespace sidestream::core

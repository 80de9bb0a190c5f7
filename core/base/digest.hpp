// SHA-256 of files and strings (OpenSSL): what manifests of checkpoints store.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sidestream::core {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view content);

// Of a whole file. Throws Error when it cannot be read.
std::string sha256_hex_of_file(const std::filesystem::path& path);

}  // namespace sidestream::core

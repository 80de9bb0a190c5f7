// Reads safetensors files: mapped, checked when opened, tensors as views by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/file.hpp"
#include "core/checkpoint/safetensors_header.hpp"

namespace sidestream::checkpoint {

// A tensor inside a mapped file: valid as long as its reader. Files of others may be misaligned:
// copy the bytes, or check the address before it is used as an array.
struct TensorView {
  std::string_view name;
  ElementType type;
  std::span<const std::uint64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian
  std::string_view file;             // for messages

  // Throws CheckpointError for a type that the program does not compute with (BOOL, I8, ...).
  core::DType dtype() const;
  std::uint64_t elements() const;
};

class SafetensorsReader {
 public:
  // Throws CheckpointError when the file cannot be read or breaks a rule of the format.
  explicit SafetensorsReader(const std::filesystem::path& path);

  std::size_t size() const noexcept { return header_.tensors.size(); }
  TensorView tensor(std::size_t index) const;  // by offset in the file

  bool contains(std::string_view name) const;
  // Throws CheckpointError that names the file and the tensor.
  TensorView at(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const noexcept { return header_.metadata; }
  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  core::MappedFile file_;
  std::string path_text_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace sidestream::checkpoint

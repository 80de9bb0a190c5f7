// The header of a safetensors file, checked completely before anything is used.
//
// Format (https://github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian
// length N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]},
// "__metadata__": {"key": "value"}}, then the data without holes. Own parser: the file comes from
// strangers, and its sizes must never be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/element_type.hpp"

namespace sidestream::checkpoint {

// Limits of our own beyond the format's.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's
inline constexpr std::size_t kMaxTensors = 1'000'000;
inline constexpr std::size_t kMaxRank = 8;
inline constexpr std::size_t kMaxNameBytes = 1024;

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<std::uint64_t> shape = {};
  std::uint64_t begin = 0;  // within the data section
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by offset
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  // of the data section within the file
};

// Parses and checks everything: length, UTF-8, JSON, duplicate keys, fields, types, shapes, sizes
// with checked products, offsets without holes or overlaps, no byte left over. `path` is for
// messages only. Throws CheckpointError that names file, byte, what was expected and what was
// found.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::filesystem::path& path);

}  // namespace sidestream::checkpoint

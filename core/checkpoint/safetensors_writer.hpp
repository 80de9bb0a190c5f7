// Writes safetensors files: streams the bytes of tensors that stay where they are, hashes them on
// the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/element_type.hpp"
#include "core/checkpoint/hashed_file.hpp"

namespace sidestream::checkpoint {

// A tensor to be written; the bytes belong to the caller and are only read during the call.
struct TensorSource {
  std::string name;
  core::DType dtype = core::DType::kFloat32;
  std::vector<std::uint64_t> shape = {};
  std::span<const std::byte> bytes = {};  // row-major
};

using Metadata = std::map<std::string, std::string>;

// Writes a new file and syncs it. Tensors are laid out by element size, largest first, then in the
// given order, so that all are aligned; the header is padded to 8 bytes. Throws CheckpointError
// when the file exists already (a mapped file is thus never overwritten), a name is empty, too long
// or given twice, bytes do not fit the shape, or the system refuses (its text is passed on); what
// was written is then removed.
FileDigest write_safetensors(const std::filesystem::path& path,
                             std::span<const TensorSource> tensors, const Metadata& metadata = {});

}  // namespace sidestream::checkpoint

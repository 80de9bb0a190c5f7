// What one rank writes into a pending checkpoint, and the digests of it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/safetensors_writer.hpp"

namespace sidestream::checkpoint {

class CheckpointWriter {
 public:
  // The pending folder of the store; it exists already.
  explicit CheckpointWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Both write a new file, sync it and remember its digest. They throw CheckpointError for a
  // name that is not plain, a file that exists, and whatever the system refuses.
  void add_safetensors(std::string_view name, std::span<const TensorSource> tensors,
                       const Metadata& metadata = {});
  void add_text(std::string_view name, std::string_view content);

  const std::vector<FileDigest>& files() const noexcept { return files_; }

 private:
  std::filesystem::path new_file(std::string_view name) const;

  std::filesystem::path folder_;
  std::vector<FileDigest> files_;
};

}  // namespace sidestream::checkpoint

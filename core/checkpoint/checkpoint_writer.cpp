#include "core/checkpoint/checkpoint_writer.hpp"

#include "core/checkpoint/manifest.hpp"

namespace sidestream::checkpoint {

std::filesystem::path CheckpointWriter::new_file(std::string_view name) const {
  require_plain_name(name, folder_);
  return folder_ / name;
}

void CheckpointWriter::add_safetensors(std::string_view name, std::span<const TensorSource> tensors,
                                       const Metadata& metadata) {
  files_.push_back(write_safetensors(new_file(name), tensors, metadata));
}

void CheckpointWriter::add_text(std::string_view name, std::string_view content) {
  HashedFile file(new_file(name));
  file.write(content);
  files_.push_back(file.finish());
}

}  // namespace sidestream::checkpoint

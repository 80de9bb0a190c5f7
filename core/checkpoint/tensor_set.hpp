// Tensors of several safetensors files by name: any number of ranks loads what any other number of
// ranks wrote.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/safetensors_reader.hpp"

namespace sidestream::checkpoint {

class TensorSet {
 public:
  // Opens and checks all files. Throws CheckpointError when one is not valid, or two hold a tensor
  // of the same name.
  explicit TensorSet(std::span<const std::filesystem::path> files);

  // model.safetensors of a folder (a checkpoint's or one of Hugging Face). Names of a model without
  // its head (`wte.weight`, as OpenAI's own GPT-2 is published) get the `transformer.` before them.
  static TensorSet open_model(const std::filesystem::path& folder);
  // The same, and all optimizer shards, of a checkpoint. Throw CheckpointError when the manifest
  // does not list them.
  static TensorSet open_model(const Checkpoint& checkpoint);
  static TensorSet open_optimizer(const Checkpoint& checkpoint);

  bool contains(std::string_view name) const { return by_name_.contains(std::string(name)); }
  // Valid as long as the set. Throws CheckpointError that names the tensor and the files.
  TensorView at(std::string_view name) const;
  std::vector<std::string> names() const;  // sorted

 private:
  void name_as_with_head();

  std::vector<std::unique_ptr<SafetensorsReader>> readers_;
  std::unordered_map<std::string, TensorView> by_name_;
};

}  // namespace sidestream::checkpoint

#include "core/checkpoint/tensor_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"
#include "core/checkpoint/tensor_assignment.hpp"

namespace sidestream::checkpoint {
namespace {

constexpr const char* kModelFile = "model.safetensors";

// What the manifest does not list has no checksum, and nobody has checked it.
std::filesystem::path listed_file(const Checkpoint& checkpoint, const std::string& name) {
  const auto& files = checkpoint.manifest.files;
  const bool listed = std::any_of(files.begin(), files.end(),
                                  [&](const FileDigest& file) { return file.name == name; });
  if (listed) return checkpoint.folder / name;
  throw core::CheckpointError(core::FileFault{.file = (checkpoint.folder / kManifestFile).string(),
                                              .offset_bytes = {},
                                              .expected = name + " among its files",
                                              .found = "no such entry"});
}

// Hugging Face's other ways to store weights.
void refuse_other_weights(const std::filesystem::path& folder) {
  for (const char* other :
       {"model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!std::filesystem::exists(folder / other)) continue;
    throw core::CheckpointError(core::FileFault{
        .file = folder.string(),
        .offset_bytes = {},
        .expected = fmt::format("all weights in {}", kModelFile),
        .found =
            fmt::format("{}; in Python model.save_pretrained(folder, max_shard_size=\"100GB\") "
                        "of transformers writes one file",
                        other)});
  }
}

}  // namespace

TensorSet::TensorSet(std::span<const std::filesystem::path> files) {
  for (const std::filesystem::path& file : files) {
    const auto& reader = readers_.emplace_back(std::make_unique<SafetensorsReader>(file));
    for (std::size_t i = 0; i < reader->size(); ++i) {
      const TensorView tensor = reader->tensor(i);
      const auto [place, is_new] = by_name_.emplace(tensor.name, tensor);
      if (is_new) continue;
      throw core::CheckpointError(
          core::FileFault{.file = file.string(),
                          .offset_bytes = {},
                          .expected = fmt::format("tensor '{}' in one file only", tensor.name),
                          .found = fmt::format("it in {} as well", place->second.file)});
    }
  }
}

TensorSet TensorSet::open_model(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kModelFile;
  if (!std::filesystem::exists(file)) refuse_other_weights(folder);
  TensorSet tensors(std::span(&file, 1));
  tensors.name_as_with_head();
  return tensors;
}

TensorSet TensorSet::open_model(const Checkpoint& checkpoint) {
  const std::filesystem::path file = listed_file(checkpoint, kModelFile);
  return TensorSet(std::span(&file, 1));
}

TensorSet TensorSet::open_optimizer(const Checkpoint& checkpoint) {
  const int ranks = checkpoint.manifest.world_size;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(listed_file(checkpoint, optimizer_file_name(rank, ranks)));
  return TensorSet(files);
}

void TensorSet::name_as_with_head() {
  constexpr const char* kModel = "transformer.";
  if (!contains("wte.weight") || contains(std::string(kModel) + "wte.weight")) return;
  std::unordered_map<std::string, TensorView> renamed;
  for (const auto& [name, tensor] : by_name_) renamed.emplace(kModel + name, tensor);
  by_name_ = std::move(renamed);
}

TensorView TensorSet::at(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found != by_name_.end()) return found->second;
  throw core::CheckpointError(core::FileFault{
      .file = readers_.empty() ? "no file" : readers_.front()->path().string(),
      .offset_bytes = {},
      .expected = fmt::format("a tensor named '{}'", name),
      .found =
          fmt::format("{} tensors of other names in {} files", by_name_.size(), readers_.size())});
}

std::vector<std::string> TensorSet::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : by_name_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sidestream::checkpoint

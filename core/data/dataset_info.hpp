// dataset.json, which `prepare` leaves beside its shards: what a trainer must know about the
// tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/data/shard_series.hpp"

namespace sidestream::data {

struct SplitInfo {
  std::uint64_t tokens = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // of text: tokens per byte turns a loss into bits per byte
  std::vector<WrittenShard> shards;
};

struct SkippedFile {
  std::string name;
  std::string reason;
};

struct DatasetInfo {
  static constexpr const char* kFileName = "dataset.json";

  std::string
      tokenizer;  // for open_tokenizer: "bytes", or the path of the tokenizer.json in the folder
  std::uint64_t vocab_size = 0;
  std::uint32_t end_of_text = 0;
  double val_fraction = 0;
  std::uint64_t seed = 0;
  SplitInfo train = {};
  SplitInfo validation = {};
  std::vector<SkippedFile> skipped = {};  // at most 1000 of them are written
  std::uint64_t skipped_files = 0;
};

// Atomically. A tokenizer other than "bytes" is written as the name of its file in the folder.
void write_dataset_info(const std::filesystem::path& folder, const DatasetInfo& info);

// Nothing when the folder has no dataset.json, as with shards that others made. Throws DataError
// for one that is damaged or of a newer schema.
std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& folder);

// A shard that has got lost would be trained around in silence. Throws DataError naming the first
// one that is no name of the folder, is not there, or has another number of tokens.
void require_shards(const std::filesystem::path& folder, const SplitInfo& split);

}  // namespace sidestream::data

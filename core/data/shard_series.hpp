// One split of a data set as numbered shards of at most so many tokens: train_000000.bin,
// train_000001.bin, ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/shard_writer.hpp"
#include "core/data/split.hpp"

namespace sidestream::data {

struct WrittenShard {
  std::string file;  // name inside the folder
  std::uint64_t tokens = 0;
};

class ShardSeries {
 public:
  struct Options {
    std::filesystem::path folder;
    Split split = Split::kTrain;
    TokenWidth width = TokenWidth::k16;
    std::uint64_t shard_tokens = 0;
    std::function<void()> before_shard = [] {};  // an error of it ends the series there
  };

  explicit ShardSeries(Options options) : options_(std::move(options)) {}

  void append(std::span<const std::uint32_t> tokens);
  // Closes the last shard. A series without tokens has no shard.
  void finish();

  const std::vector<WrittenShard>& shards() const noexcept { return shards_; }
  std::uint64_t tokens() const noexcept { return tokens_; }

 private:
  void open_next();

  Options options_;
  std::unique_ptr<ShardWriter> writer_;
  std::vector<WrittenShard> shards_;
  std::uint64_t tokens_ = 0;
};

}  // namespace sidestream::data

// All shards of one split of a data folder as one sequence of tokens, in name order.
//
// A shard is a regular file ending in .bin with `train` or `val` in its name; other files are left
// alone. Thread-safe: everything is mapped read-only and never changes.
//
// Of what was read, 8 MiB and a read at most count as memory of this process: samples lie anywhere,
// and a long training would have all of its data mapped in the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/data/split.hpp"
#include "core/data/token_shard.hpp"

namespace sidestream::data {

class TokenStream {
 public:
  // At least one shard, all of one token width. Throws DataError otherwise.
  explicit TokenStream(std::vector<TokenShard> shards);

  // Throws DataError: folder missing or without a shard of the split, a name with both words, a
  // shard that is damaged.
  static TokenStream open(const std::filesystem::path& folder, Split split);

  std::uint64_t size() const noexcept { return starts_.back(); }  // tokens
  const std::vector<TokenShard>& shards() const noexcept { return shards_; }

  // Widens out.size() tokens from `first` on, across shards. Throws Error past the end.
  void read(std::uint64_t first, std::span<std::int64_t> out) const;

 private:
  void count_as_read(std::uint64_t bytes) const;

  std::vector<TokenShard> shards_;
  std::vector<std::uint64_t> starts_;  // of each shard, and the total
  // Since pages were dropped. By pointer: a stream can be moved.
  std::unique_ptr<std::atomic<std::uint64_t>> bytes_read_ =
      std::make_unique<std::atomic<std::uint64_t>>(0);
};

// Whether the folder has a shard of the split. Throws DataError like TokenStream::open.
bool has_split(const std::filesystem::path& folder, Split split);

}  // namespace sidestream::data

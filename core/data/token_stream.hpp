// All shards of one split of a data folder as one sequence of tokens, in name order.
//
// A shard is a regular file ending in .bin with `train` or `val` in its name; other files are left
// alone. Thread-safe: everything is mapped read-only and never changes. A shard that is cut short
// all the same is noticed before it is read from, once for each batch.
//
// Of what was read, 8 MiB and a read at most count as memory of this process: samples lie anywhere,
// and a long training would have all of its data mapped in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/data/split.hpp"
#include "core/data/token_shard.hpp"

namespace sidestream::data {

// Those of which a reader knows that they are whole. To look is a question to the file system, and
// many ranks that ask it with every sample are a load on one that they share.
using WholeShards = std::vector<const TokenShard*>;

class TokenStream {
 public:
  // At least one shard, all of one token width. Throws DataError otherwise.
  explicit TokenStream(std::vector<TokenShard> shards);

  // Throws DataError: folder missing or without a shard of the split, a name with both words, a
  // shard that is damaged.
  static TokenStream open(const std::filesystem::path& folder, Split split);

  std::uint64_t size() const noexcept { return starts_.back(); }  // tokens
  const std::vector<TokenShard>& shards() const noexcept { return shards_; }

  // Widens out.size() tokens from `first` on, across shards. Looks whether shards are whole that
  // are not among `whole`, and adds them: one list for a batch, a new one for the next. Throws
  // Error past the end, DataError for a shard that has been cut short.
  void read(std::uint64_t first, std::span<std::int64_t> out, WholeShards& whole) const;
  void read(std::uint64_t first, std::span<std::int64_t> out) const {
    WholeShards whole;
    read(first, out, whole);
  }

 private:
  // Since pages were dropped.
  struct ReadSoFar {
    std::mutex mutex;
    std::uint64_t bytes = 0;
    std::vector<const TokenShard*> shards;  // one may be there several times
  };

  void count_as_read(const TokenShard& shard, std::uint64_t bytes) const;

  std::vector<TokenShard> shards_;
  std::vector<std::uint64_t> starts_;  // of each shard, and the total
  // By pointer: a stream can be moved.
  std::unique_ptr<ReadSoFar> read_so_far_ = std::make_unique<ReadSoFar>();
};

// Whether the folder has a shard of the split. Throws DataError like TokenStream::open.
bool has_split(const std::filesystem::path& folder, Split split);

}  // namespace sidestream::data

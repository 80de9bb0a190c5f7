// Writes one llm.c token shard, token by token, under a temporary name in the same folder. `finish`
// makes it durable and gives it its name; a writer that goes away before that removes what it
// wrote. A reader thus never sees half a shard: names of temporaries do not end in .bin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/base/file.hpp"

namespace sidestream::data {

enum class TokenWidth : std::uint8_t { k16 = 2, k32 = 4 };

// The narrowest that holds every id of a vocabulary.
TokenWidth width_for(std::uint64_t vocab_size);

class ShardWriter {
 public:
  static constexpr std::uint64_t kMaxTokens = 0x7FFFFFFF;  // the header counts in int32

  // Throws Error with the system's text when the temporary cannot be created.
  ShardWriter(std::filesystem::path path, TokenWidth width);
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;
  ~ShardWriter();

  // Throws DataError for an id that does not fit the width and for more than kMaxTokens; Error when
  // the disk is full.
  void append(std::span<const std::uint32_t> tokens);

  std::uint64_t size() const noexcept { return size_; }

  // Header, fsync, rename, fsync of the folder. Nothing may be appended afterwards.
  void finish();

 private:
  void put(std::uint32_t token);
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  TokenWidth width_;
  core::UniqueFd fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t size_ = 0;
};

// A whole shard at once.
void write_llm_c_shard(const std::filesystem::path& path, std::span<const std::uint32_t> tokens,
                       TokenWidth width);

}  // namespace sidestream::data

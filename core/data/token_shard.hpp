// One file of token ids, mapped read-only and checked completely when it is opened.
//
// llm.c:   256 little-endian int32 {magic, version, tokens, 0...}, then the ids.
//          Magic 20240520, version 1: uint16 ids; magic 20240801, version 7: uint32 ids.
//          https://github.com/karpathy/llm.c (dev/data/data_common.py)
// nanoGPT: uint16 ids and no header. https://github.com/karpathy/nanoGPT (data/*/prepare.py)
//
// Megatron: NAME.bin with uint16 or int32 ids and no header, beside NAME.idx (megatron_index.hpp).
//
// A file with such an index is Megatron's. Any other that does not start with one of the magics is
// taken for nanoGPT only when its name says so (train.bin, val.bin, *.nanogpt.bin) and its first
// kilobyte does not look like a header: a damaged header is an error and never becomes tokens. The
// other way round nothing can be mistaken: the low halves of the magics, 55448 and 55729, are no
// GPT-2 ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/base/file.hpp"

namespace sidestream::data {

enum class ShardFormat : std::uint8_t { kLlmC, kNanoGpt, kMegatron };

struct LlmCHeader {
  static constexpr std::size_t kBytes = 1024;
  static constexpr std::int32_t kMagic16 = 20240520;
  static constexpr std::int32_t kVersion16 = 1;
  static constexpr std::int32_t kMagic32 = 20240801;
  static constexpr std::int32_t kVersion32 = 7;
};

class TokenShard {
 public:
  // Throws DataError: cannot be opened, empty, unknown magic, wrong version, size and header
  // disagree, half a token, an index that does not fit.
  explicit TokenShard(const std::filesystem::path& path);

  std::uint64_t size() const noexcept { return size_; }              // tokens
  std::size_t token_bytes() const noexcept { return token_bytes_; }  // 2 or 4
  ShardFormat format() const noexcept { return format_; }
  const std::filesystem::path& path() const noexcept { return file_.path(); }

  // Where token number `index` starts in the file, for messages.
  std::uint64_t offset_bytes(std::uint64_t index) const noexcept {
    return header_bytes_ + index * token_bytes_;
  }

  // Asks the file system. Throws DataError when the file has been cut short since it was opened:
  // reading on would end the process (SIGBUS).
  void require_whole() const;

  // Widens out.size() tokens from `first` on, after require_whole(). Both must lie inside the
  // shard.
  void copy(std::uint64_t first, std::span<std::int64_t> out) const;

  // Index of the first of `count` tokens from `first` on that is not below `limit`; first + count
  // when there is none.
  std::uint64_t find_not_below(std::uint64_t limit, std::uint64_t first, std::uint64_t count) const;

  // What was read of these tokens, or of all, is no memory of this process any more.
  void drop_pages(std::uint64_t first, std::uint64_t count) const noexcept {
    file_.drop_pages(offset_bytes(first), count * token_bytes_);
  }
  void drop_pages() const noexcept { file_.drop_pages(); }

 private:
  void open_llm_c();
  void open_nano_gpt();
  void open_megatron(const std::filesystem::path& index);

  core::MappedFile file_;
  ShardFormat format_ = ShardFormat::kLlmC;
  std::size_t header_bytes_ = 0;
  std::size_t token_bytes_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace sidestream::data

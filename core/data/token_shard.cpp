#include "core/data/token_shard.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/vectorize.hpp"
#include "core/data/megatron_index.hpp"

namespace sidestream::data {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are read in place");

using core::DataError;

core::MappedFile map_or_throw(const std::filesystem::path& path) {
  try {
    return core::MappedFile(path);
  } catch (const core::Error& error) {
    throw DataError("token shard: " + std::string(error.what()));
  }
}

std::int32_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

bool starts_with_magic(std::span<const std::byte> bytes, std::int32_t magic) {
  return bytes.size() >= sizeof(magic) && word(bytes, 0) == magic;
}

bool has_raw_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name == "train.bin" || name == "val.bin" || name.ends_with(".nanogpt.bin");
}

// All but three words of an llm.c header are zero; real text has no such run of token 0.
bool looks_like_header(std::span<const std::byte> bytes) {
  if (bytes.size() < LlmCHeader::kBytes) return false;
  std::size_t zeros = 0;
  for (std::size_t i = 3; i < LlmCHeader::kBytes / 4; ++i) zeros += word(bytes, i) == 0;
  return zeros >= 200;
}

std::string describe_magic(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return "a file of " + std::to_string(bytes.size()) + " bytes";
  const std::int32_t magic = word(bytes, 0);
  const char* meaning = "";
  if (magic == 20240326) meaning = " (llm.c's file of model weights)";
  if (magic == 20240522) meaning = " (llm.c's file of evaluation questions)";
  if (magic == 20240527) meaning = " (llm.c's file of training state)";
  return std::to_string(magic) + meaning;
}

// Loops over plain arrays, in the widest instructions that the processor has.
SIDESTREAM_VECTORIZED void widen16(const std::uint16_t* from, std::int64_t* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}
SIDESTREAM_VECTORIZED void widen32(const std::uint32_t* from, std::int64_t* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}
SIDESTREAM_VECTORIZED std::uint16_t max16(const std::uint16_t* from, std::size_t n) {
  std::uint16_t result = 0;
  for (std::size_t i = 0; i < n; ++i) result = from[i] > result ? from[i] : result;
  return result;
}
SIDESTREAM_VECTORIZED std::uint32_t max32(const std::uint32_t* from, std::size_t n) {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < n; ++i) result = from[i] > result ? from[i] : result;
  return result;
}

template <typename Token>
std::uint64_t first_not_below(const Token* tokens, std::uint64_t limit, std::uint64_t count) {
  const auto found = std::find_if(tokens, tokens + count, [&](Token t) { return t >= limit; });
  return static_cast<std::uint64_t>(found - tokens);
}

}  // namespace

TokenShard::TokenShard(const std::filesystem::path& path) : file_(map_or_throw(path)) {
  const auto bytes = file_.bytes();
  if (bytes.empty()) throw DataError({path.string(), 0, "token ids", "an empty file"});
  const std::filesystem::path index = megatron_index_of(path);
  if (std::filesystem::exists(index)) {
    open_megatron(index);
  } else if (starts_with_magic(bytes, LlmCHeader::kMagic16) ||
             starts_with_magic(bytes, LlmCHeader::kMagic32)) {
    open_llm_c();
  } else if (has_raw_name(path) && !looks_like_header(bytes)) {
    open_nano_gpt();
  } else {
    throw DataError(
        {path.string(), 0,
         "magic 20240520 or 20240801 of an llm.c token shard (headerless nanoGPT "
         "tokens are read from "
         "files named train.bin, val.bin or *.nanogpt.bin; Megatron's have their NAME.idx "
         "beside them)",
         describe_magic(bytes)});
  }
}

void TokenShard::open_llm_c() {
  const auto bytes = file_.bytes();
  const std::string name = path().string();
  if (bytes.size() < LlmCHeader::kBytes) {
    throw DataError({name, bytes.size(), "a header of 1024 bytes",
                     "the end of the file after " + std::to_string(bytes.size()) + " bytes"});
  }
  const bool wide = word(bytes, 0) == LlmCHeader::kMagic32;
  const std::int32_t version = wide ? LlmCHeader::kVersion32 : LlmCHeader::kVersion16;
  if (word(bytes, 1) != version) {
    throw DataError(
        {name, 4,
         "version " + std::to_string(version) + " (" + (wide ? "uint32" : "uint16") + " ids)",
         "version " + std::to_string(word(bytes, 1))});
  }
  const std::int32_t promised = word(bytes, 2);
  if (promised <= 0)
    throw DataError({name, 8, "a positive number of tokens", std::to_string(promised)});
  token_bytes_ = wide ? 4 : 2;
  header_bytes_ = LlmCHeader::kBytes;
  size_ = static_cast<std::uint64_t>(promised);
  if (bytes.size() != offset_bytes(size_)) {
    throw DataError({name, 8,
                     std::to_string(offset_bytes(size_)) + " bytes, as the header's " +
                         std::to_string(promised) + " tokens need",
                     "a file of " + std::to_string(bytes.size()) + " bytes"});
  }
}

void TokenShard::open_nano_gpt() {
  format_ = ShardFormat::kNanoGpt;
  token_bytes_ = 2;
  const std::size_t bytes = file_.bytes().size();
  if (bytes % 2 != 0) {
    throw DataError({path().string(), bytes - 1, "whole uint16 ids",
                     "an odd size of " + std::to_string(bytes) + " bytes"});
  }
  size_ = bytes / 2;
}

void TokenShard::open_megatron(const std::filesystem::path& index) {
  const MegatronIndex found = read_megatron_index(index, file_.bytes().size());
  format_ = ShardFormat::kMegatron;
  token_bytes_ = found.token_bytes;
  size_ = found.tokens;
}

// A shard that was removed or replaced is still whole for those who have it open.
void TokenShard::require_whole() const {
  const std::optional<std::size_t> bytes = file_.size_now();
  if (!bytes || *bytes >= file_.bytes().size()) return;
  throw DataError(
      {path().string(), *bytes,
       "the " + std::to_string(file_.bytes().size()) + " bytes that it had when it was opened",
       "the end of the file: shards must not change while they are in use"});
}

void TokenShard::copy(std::uint64_t first, std::span<std::int64_t> out) const {
  assert(first + out.size() <= size_);
  const std::byte* from = file_.bytes().data() + offset_bytes(first);
  if (token_bytes_ == 2) {
    widen16(reinterpret_cast<const std::uint16_t*>(from), out.data(), out.size());
  } else {
    widen32(reinterpret_cast<const std::uint32_t*>(from), out.data(), out.size());
  }
}

std::uint64_t TokenShard::find_not_below(std::uint64_t limit, std::uint64_t first,
                                         std::uint64_t count) const {
  assert(first + count <= size_);
  const std::byte* from = file_.bytes().data() + offset_bytes(first);
  if (token_bytes_ == 2) {
    const auto* tokens = reinterpret_cast<const std::uint16_t*>(from);
    return first + (max16(tokens, count) < limit ? count : first_not_below(tokens, limit, count));
  }
  const auto* tokens = reinterpret_cast<const std::uint32_t*>(from);
  return first + (max32(tokens, count) < limit ? count : first_not_below(tokens, limit, count));
}

}  // namespace sidestream::data

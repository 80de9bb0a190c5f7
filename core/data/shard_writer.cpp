#include "core/data/shard_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/data/token_shard.hpp"

namespace sidestream::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

}  // namespace

TokenWidth width_for(std::uint64_t vocab_size) {
  return vocab_size <= 65536 ? TokenWidth::k16 : TokenWidth::k32;
}

ShardWriter::ShardWriter(std::filesystem::path path, TokenWidth width)
    : path_(std::move(path)),
      temporary_(path_.string() + ".tmp." + std::to_string(::getpid())),
      width_(width),
      fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!fd_) core::fail_to_write("cannot create", path_);
  buffer_.reserve(kBufferBytes + 4);
  buffer_.resize(LlmCHeader::kBytes);  // filled in by finish
}

ShardWriter::~ShardWriter() {
  if (fd_) ::unlink(temporary_.c_str());
}

void ShardWriter::append(std::span<const std::uint32_t> tokens) {
  if (tokens.size() > kMaxTokens - size_) {
    throw core::DataError(path_.string() +
                          ": a shard holds at most 2147483647 tokens; ask for smaller shards");
  }
  for (const std::uint32_t token : tokens) put(token);
}

void ShardWriter::put(std::uint32_t token) {
  const auto width = static_cast<std::size_t>(width_);
  if (width == 2 && token > 0xFFFF) {
    throw core::DataError(path_.string() + ": token id " + std::to_string(token) +
                          " does not fit in 16 bits");
  }
  const std::size_t end = buffer_.size();
  buffer_.resize(end + width);
  std::memcpy(buffer_.data() + end, &token, width);
  ++size_;
  if (buffer_.size() >= kBufferBytes) flush();
}

void ShardWriter::flush() {
  core::write_all(fd_.get(), {reinterpret_cast<const char*>(buffer_.data()), buffer_.size()},
                  path_);
  buffer_.clear();
}

void ShardWriter::finish() {
  flush();
  std::array<std::int32_t, 256> header{};
  const bool wide = width_ == TokenWidth::k32;
  header[0] = wide ? LlmCHeader::kMagic32 : LlmCHeader::kMagic16;
  header[1] = wide ? LlmCHeader::kVersion32 : LlmCHeader::kVersion16;
  header[2] = static_cast<std::int32_t>(size_);
  if (::pwrite(fd_.get(), header.data(), sizeof(header), 0) != ssize_t{sizeof(header)}) {
    core::fail_to_write("cannot write the header of", path_);
  }
  if (::fsync(fd_.get()) != 0) core::fail_to_write("cannot sync", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    core::fail_to_write("cannot rename to", path_);
  }
  fd_.reset();
  core::sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void write_llm_c_shard(const std::filesystem::path& path, std::span<const std::uint32_t> tokens,
                       TokenWidth width) {
  ShardWriter writer(path, width);
  writer.append(tokens);
  writer.finish();
}

}  // namespace sidestream::data

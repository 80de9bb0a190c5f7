#include "core/data/token_stream.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::data {
namespace {

using core::DataError;
namespace fs = std::filesystem;

bool belongs_to(const fs::path& path, Split split) {
  const std::string name = path.filename().string();
  if (name.starts_with('.') || !name.ends_with(".bin")) return false;
  const bool train = name.find("train") != std::string::npos;
  const bool validation = name.find("val") != std::string::npos;
  if (train && validation) {
    throw DataError({path.string(),
                     {},
                     "a name with either `train` or `val`",
                     "a name with both; rename the shard"});
  }
  return split == Split::kTrain ? train : validation;
}

std::vector<fs::path> shard_paths(const fs::path& folder, Split split) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError("data folder " + folder.string() +
                    " is missing or no folder; `sidestream prepare` makes one");
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!belongs_to(entry.path(), split)) continue;
    std::error_code no_target;
    if (!entry.is_regular_file(no_target)) {
      throw DataError({entry.path().string(),
                       {},
                       "a shard, which is a regular file",
                       no_target ? no_target.message() : "something else; remove or rename it"});
    }
    paths.push_back(entry.path());
  }
  if (error) throw DataError("cannot list data folder " + folder.string() + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string_view name_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValidation:
      return "val";
  }
  throw core::Error("name_of: unknown split " + std::to_string(static_cast<int>(split)));
}

TokenStream::TokenStream(std::vector<TokenShard> shards) : shards_(std::move(shards)) {
  if (shards_.empty()) throw DataError("a token stream needs at least one shard");
  starts_.push_back(0);
  for (const TokenShard& shard : shards_) {
    if (shard.token_bytes() != shards_.front().token_bytes()) {
      throw DataError(
          {shard.path().string(), 0,
           std::to_string(shards_.front().token_bytes()) + "-byte ids as in " +
               shards_.front().path().string(),
           std::to_string(shard.token_bytes()) + "-byte ids; shards of two tokenizers do not mix"});
    }
    starts_.push_back(starts_.back() + shard.size());
  }
}

TokenStream TokenStream::open(const fs::path& folder, Split split) {
  std::vector<TokenShard> shards;
  for (const fs::path& path : shard_paths(folder, split)) shards.emplace_back(path);
  if (shards.empty()) {
    throw DataError("data folder " + folder.string() +
                    " has no shard of this split: expected *.bin with `" +
                    std::string(name_of(split)) + "` in the name");
  }
  return TokenStream(std::move(shards));
}

void TokenStream::read(std::uint64_t first, std::span<std::int64_t> out, WholeShards& whole) const {
  if (first > size() || out.size() > size() - first) {
    throw core::Error("token stream: tokens " + std::to_string(first) + " to " +
                      std::to_string(first + out.size()) + " asked for, " + std::to_string(size()) +
                      " are there");
  }
  auto place = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) -
                                        starts_.begin() - 1);
  for (; !out.empty(); ++place) {
    const TokenShard& shard = shards_[place];
    if (std::find(whole.begin(), whole.end(), &shard) == whole.end()) {
      shard.require_whole();
      whole.push_back(&shard);
    }
    const std::uint64_t inside = first - starts_[place];
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), shard.size() - inside));
    shard.copy(inside, out.first(count));
    count_as_read(shard, count * shard.token_bytes());
    out = out.subspan(count);
    first += count;
  }
}

// Only shards that were read from: a data set may have thousands, and each is a call.
void TokenStream::count_as_read(const TokenShard& shard, std::uint64_t bytes) const {
  // A page that is looked at brings those around it (fault_around_bytes of the kernel).
  constexpr std::uint64_t kAround = 64 << 10, kMost = 8 << 20;
  std::vector<const TokenShard*> shards;
  {
    const std::lock_guard lock(read_so_far_->mutex);
    read_so_far_->shards.push_back(&shard);
    read_so_far_->bytes += bytes + kAround;
    if (read_so_far_->bytes < kMost) return;
    read_so_far_->bytes = 0;
    shards.swap(read_so_far_->shards);
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (const TokenShard* read : shards) read->drop_pages();
}

bool has_split(const fs::path& folder, Split split) { return !shard_paths(folder, split).empty(); }

}  // namespace sidestream::data

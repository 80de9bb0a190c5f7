#include "core/data/shard_series.hpp"

#include <algorithm>
#include <cstdio>

namespace sidestream::data {

void ShardSeries::open_next() {
  options_.before_shard();
  char number[32];
  std::snprintf(number, sizeof(number), "_%06zu.bin", shards_.size());
  shards_.push_back({std::string(name_of(options_.split)) + number, 0});
  writer_ = std::make_unique<ShardWriter>(options_.folder / shards_.back().file, options_.width);
}

void ShardSeries::append(std::span<const std::uint32_t> tokens) {
  while (!tokens.empty()) {
    if (!writer_) open_next();
    const std::uint64_t room = options_.shard_tokens - writer_->size();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, tokens.size()));
    writer_->append(tokens.first(count));
    tokens = tokens.subspan(count);
    tokens_ += count;
    shards_.back().tokens += count;
    if (writer_->size() == options_.shard_tokens) finish();
  }
}

void ShardSeries::finish() {
  if (writer_) writer_->finish();
  writer_.reset();
}

}  // namespace sidestream::data

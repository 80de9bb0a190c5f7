#include "core/data/token_check.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "core/base/error.hpp"
#include "core/data/parallel_for.hpp"

namespace sidestream::data {
namespace {

using core::DataError;

constexpr std::uint64_t kPieceTokens = std::uint64_t{1} << 20;

std::vector<TokenCheck::Piece> pieces_of(const TokenStream& stream,
                                         const TokenCheckConfig& config) {
  std::vector<TokenCheck::Piece> pieces;
  std::uint64_t number = 0;
  for (const TokenShard& shard : stream.shards()) {
    if (shard.token_bytes() == 2 && config.vocab_size > 0xFFFF)
      continue;  // every uint16 is a valid id
    for (std::uint64_t first = 0; first < shard.size(); first += kPieceTokens) {
      if (number++ % config.parts != config.part) continue;
      pieces.push_back({&shard, first, std::min(kPieceTokens, shard.size() - first)});
    }
  }
  return pieces;
}

void check_piece(const TokenCheck::Piece& piece, std::uint64_t vocab_size) {
  const std::uint64_t bad = piece.shard->find_not_below(vocab_size, piece.first, piece.count);
  piece.shard->drop_pages(piece.first, piece.count);
  if (bad == piece.first + piece.count) return;
  piece.shard->require_whole();
  std::int64_t id = 0;
  piece.shard->copy(bad, {&id, 1});
  throw DataError(
      {piece.shard->path().string(), piece.shard->offset_bytes(bad),
       "token ids below the vocabulary size " + std::to_string(vocab_size),
       "id " + std::to_string(id) + " (token " + std::to_string(bad) +
           " of the shard); --vocab-size must be that of the tokenizer that made them"});
}

}  // namespace

TokenCheck::TokenCheck(const TokenStream& stream, const TokenCheckConfig& config)
    : config_(config) {
  if (config.parts == 0 || config.part >= config.parts)
    throw core::Error("token check: part must be below parts");
  pieces_ = pieces_of(stream, config);
}

bool TokenCheck::go_on(std::chrono::steady_clock::time_point until) {
  std::atomic<bool> has_begun = false;
  const auto is_over = [&] {
    return has_begun.exchange(true) && std::chrono::steady_clock::now() >= until;
  };
  const std::uint64_t first = next_;
  next_ += parallel_for(
      {.count = pieces_.size() - first,
       .threads = config_.threads,
       .thread_name = "ss-check",
       .is_over = is_over},
      [&](std::uint64_t i, int) { check_piece(pieces_[first + i], config_.vocab_size); });
  return next_ == pieces_.size();
}

void check_token_ids(const TokenStream& stream, const TokenCheckConfig& config) {
  TokenCheck(stream, config).go_on(std::chrono::steady_clock::time_point::max());
}

}  // namespace sidestream::data

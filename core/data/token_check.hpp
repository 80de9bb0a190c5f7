// Looks at every token of a split: whether the model has a row for its id.
//
// Reading all of a large data set takes long, so that it can be done in parts, with a sign of life
// between them:
//
//   TokenCheck check(stream, {.vocab_size = 50257});
//   while (!check.go_on(Clock::now() + 5s)) tell_that_it_goes_on();
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/data/token_stream.hpp"

namespace sidestream::data {

struct TokenCheckConfig {
  std::uint64_t vocab_size = 0;
  int threads = 1;
  // The ranks of a node may share the work: this check looks at every parts-th piece, from `part`
  // on.
  std::uint64_t part = 0;
  std::uint64_t parts = 1;
};

class TokenCheck {
 public:
  struct Piece {
    const TokenShard* shard;
    std::uint64_t first;  // token of the shard
    std::uint64_t count;
  };

  // The stream outlives it. Throws Error for a part that is none.
  TokenCheck(const TokenStream& stream, const TokenCheckConfig& config);

  // Looks at what it has not looked at yet, at one piece at least; true once all is done. Begins
  // nothing after `until`: each thread may still finish a piece of 2^20 tokens. Throws DataError
  // with the file and byte offset of the first id that is not below the vocabulary size.
  bool go_on(std::chrono::steady_clock::time_point until);
  std::uint64_t pieces() const noexcept { return pieces_.size(); }
  std::uint64_t done() const noexcept { return next_; }  // of them

 private:
  TokenCheckConfig config_;
  std::vector<Piece> pieces_;
  std::uint64_t next_ = 0;
};

// All of it at once. Throws what TokenCheck does.
void check_token_ids(const TokenStream& stream, const TokenCheckConfig& config);

}  // namespace sidestream::data

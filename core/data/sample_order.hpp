// Which sample goes where: a pure function, so that any rank can start at any step without
// replaying anything, and the same samples are met in the same step for every number of ranks with
// the same B G R.
//
// Of a stream of N tokens sample i holds tokens i T .. i T + T (inputs without the last, targets
// without the first), n = floor((N - 1) / T) samples. Step s >= 1, micro-step g, rank r, row b
// takes the index (((s-1) G + g) R + r) B + b. Index i is in epoch floor(i / n) and names sample i
// mod n, or its image under the epoch's permutation.
#pragma once

#include <cstdint>

namespace sidestream::data {

enum class Shuffle : std::uint8_t { kOff, kOn };

struct SampleOrder {
  std::uint64_t samples = 0;  // n
  Shuffle shuffle = Shuffle::kOn;
  std::uint64_t seed = 0;

  std::uint64_t epoch(std::uint64_t index) const { return index / samples; }
  std::uint64_t sample(std::uint64_t index) const;
};

struct BatchPlace {
  std::uint64_t step = 1;
  std::uint64_t micro_step = 0;
};

struct BatchGeometry {
  std::uint64_t batch_size = 1;         // B
  std::uint64_t grad_accumulation = 1;  // G
  std::uint64_t rank = 0;               // r
  std::uint64_t world_size = 1;         // R
  std::uint64_t first_sample = 0;       // taken before step 1, by a run with another B G R

  // Index of the first of B rows; the others follow it.
  std::uint64_t first_index(const BatchPlace& place) const {
    const std::uint64_t micro_steps = (place.step - 1) * grad_accumulation + place.micro_step;
    return first_sample + (micro_steps * world_size + rank) * batch_size;
  }
  std::uint64_t samples_per_step() const { return batch_size * grad_accumulation * world_size; }
};

// floor((tokens - 1) / T), 0 for an empty stream.
std::uint64_t sample_count(std::uint64_t tokens, std::uint64_t sequence_length);

// The samples that a sequence length makes of one and the same stream.
struct SampleCut {
  std::uint64_t sequence_length = 1;  // T
  std::uint64_t samples = 0;          // n
};

// How many samples of `to` a run has behind it that has taken `taken` of `from`: those of as many
// epochs, and of the one that has begun those that its tokens have reached into.
std::uint64_t taken_with_another_length(std::uint64_t taken, const SampleCut& from,
                                        const SampleCut& to);

}  // namespace sidestream::data

// What the largest example takes: the measure for "enough" where no configuration is at hand.
#pragma once

#include <cstdint>
#include <string>

namespace sidestream::launch::doctor {

struct ModelNeed {
  std::string model = "gpt2-124m";
  std::int64_t rank_bytes = 0;  // weights, gradients and moments of a rank, its part of shared
  std::int64_t checkpoint_bytes = 0;  // all files of one
};

// In fp32 with AdamW, as `train` does by default; activations are not counted.
ModelNeed need_of_example(int ranks_on_host);

}  // namespace sidestream::launch::doctor

// Model FLOPs utilisation: useful work per second over a peak. On processors it is what `bench
// ceilings` measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launch/ceilings/ceilings.hpp"
#include "launch/options/train_options.hpp"
#include "model/config.hpp"

namespace sidestream::launch {

class Mfu {
 public:
  // Empty ceilings: nothing was measured, and there is no figure. `nodes` counts machines alike.
  Mfu(const model::ModelConfig& model, std::int64_t sequence_length, Precision precision, int nodes,
      const std::optional<Ceilings>& ceilings);

  // With the peak of all ranks together; empty: not known.
  Mfu(const model::ModelConfig& model, std::int64_t sequence_length,
      std::optional<double> peak_flops_per_s);

  // (6 N + 6 L C T) tokens/s over the peak of the precision.
  std::optional<double> at(double tokens_per_s) const;

  // What is to be said of a figure that is missing or cannot be true, with a remedy; mostly empty.
  std::string remark(double tokens_per_s) const;

  const model::FlopsPerToken& flops_per_token() const noexcept { return flops_per_token_; }
  // Of all ranks together; empty: not known.
  std::optional<double> peak_flops_per_s() const noexcept { return peak_flops_per_s_; }

 private:
  model::FlopsPerToken flops_per_token_;
  std::optional<double> peak_flops_per_s_;
  bool peak_is_measured_;  // by `bench ceilings`; else from the table of GPUs
};

}  // namespace sidestream::launch

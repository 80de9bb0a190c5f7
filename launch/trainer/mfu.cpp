#include "launch/trainer/mfu.hpp"

namespace sidestream::launch {

Mfu::Mfu(const model::ModelConfig& model, std::int64_t sequence_length, Precision precision,
         int nodes, const std::optional<Ceilings>& ceilings)
    : flops_per_token_(model::flops_per_token(model, sequence_length)) {
  if (!ceilings) return;
  const double one_node =
      precision == Precision::kBf16 ? ceilings->bf16_flops_per_s : ceilings->fp32_flops_per_s;
  peak_flops_per_s_ = one_node * nodes;
}

Mfu::Mfu(const model::ModelConfig& model, std::int64_t sequence_length,
         std::optional<double> peak_flops_per_s)
    : flops_per_token_(model::flops_per_token(model, sequence_length)),
      peak_flops_per_s_(peak_flops_per_s) {}

std::optional<double> Mfu::at(double tokens_per_s) const {
  if (!peak_flops_per_s_) return std::nullopt;
  return flops_per_token_.causal * tokens_per_s / *peak_flops_per_s_;
}

}  // namespace sidestream::launch

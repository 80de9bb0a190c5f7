#include "launch/trainer/mfu.hpp"

#include <fmt/format.h>

namespace sidestream::launch {

Mfu::Mfu(const model::ModelConfig& model, std::int64_t sequence_length, Precision precision,
         int nodes, const std::optional<Ceilings>& ceilings)
    : flops_per_token_(model::flops_per_token(model, sequence_length)), peak_is_measured_(true) {
  if (!ceilings) return;
  const double one_node =
      precision == Precision::kBf16 ? ceilings->bf16_flops_per_s : ceilings->fp32_flops_per_s;
  peak_flops_per_s_ = one_node * nodes;
}

Mfu::Mfu(const model::ModelConfig& model, std::int64_t sequence_length,
         std::optional<double> peak_flops_per_s)
    : flops_per_token_(model::flops_per_token(model, sequence_length)),
      peak_flops_per_s_(peak_flops_per_s),
      peak_is_measured_(false) {}

std::optional<double> Mfu::at(double tokens_per_s) const {
  if (!peak_flops_per_s_) return std::nullopt;
  return flops_per_token_.causal * tokens_per_s / *peak_flops_per_s_;
}

std::string Mfu::remark(double tokens_per_s) const {
  const auto figure = at(tokens_per_s);
  if (!figure)
    return peak_is_measured_ ? "MFU is not known: `sidestream bench ceilings` measures, once, what "
                               "this machine reaches"
                             : "MFU is not known: the peak of this GPU is not in our table";
  if (*figure <= 1) return "";
  return fmt::format("an MFU of {:.0f} % cannot be: {}", *figure * 100,
                     peak_is_measured_
                         ? "the ceilings are too low, as of a machine that was busy; measure them "
                           "again on a quiet one with `sidestream bench ceilings`"
                         : "the table has too low a peak for this GPU");
}

}  // namespace sidestream::launch

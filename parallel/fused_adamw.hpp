// AdamW in one pass over each element: unscale, clip, moments, decay, master weight, low-precision
// copy.
#pragma once

#include "core/optim/adamw.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/piece_list.hpp"

namespace sidestream::parallel {

class FusedAdamW : public Optimizer {
 public:
  FusedAdamW(const OptimizerConfig& config, ParameterSpace& parameters,
             const GradientSpace& gradients);

  void update(const OptimizerStep& step) override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  void each_state(const VisitState& visit) override;
  void layout_changed() override { pieces_ = PieceList(parameters_); }

 private:
  void update_piece(const Piece& piece, const optim::AdamWCoefficients& coefficients,
                    const optim::RoundingSource& rounding) const;

  optim::AdamWConfig config_;
  std::uint64_t rounding_seed_;
  ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  PieceList pieces_;
  FlatState first_moments_;
  FlatState second_moments_;
};

}  // namespace sidestream::parallel

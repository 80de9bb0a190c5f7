// SGD with momentum in one pass over each element.
#pragma once

#include "core/optim/sgd.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/piece_list.hpp"

namespace sidestream::parallel {

class FusedSgd : public Optimizer {
 public:
  FusedSgd(const OptimizerConfig& config, ParameterSpace& parameters,
           const GradientSpace& gradients);

  void update(const OptimizerStep& step) override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  void each_state(const VisitState& visit) override;
  void layout_changed() override { pieces_ = PieceList(parameters_); }

 private:
  void update_piece(const Piece& piece, const optim::SgdCoefficients& coefficients,
                    const optim::RoundingSource& rounding) const;

  optim::SgdConfig config_;
  std::uint64_t rounding_seed_;
  ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  PieceList pieces_;
  FlatState momentum_;  // empty without momentum
};

}  // namespace sidestream::parallel

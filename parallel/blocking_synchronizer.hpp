// One blocking all-reduce after another, when backward is over.
#pragma once

#include "parallel/gradient_synchronizer.hpp"

namespace sidestream::parallel {

class BlockingSynchronizer : public GradientSynchronizer {
 public:
  BlockingSynchronizer(comm::Communicator& communicator, const GradientSpace& gradients,
                       CurrentStream current_stream)
      : GradientSynchronizer(communicator, gradients, std::move(current_stream)) {}

  void begin() override { reset_clock(); }
  void bucket_ready(std::size_t /*bucket*/) override {}
  void finish(const std::function<void(std::size_t)>& on_reduced) override;
};

}  // namespace sidestream::parallel

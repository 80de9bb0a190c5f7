// Which parameters of a module are trained: decided when DataParallel is made, and looked at again
// in every step, for a program that freezes or unfreezes one later would get other weights than it
// thinks.
#pragma once

#include <vector>

#include <torch/nn/module.h>

#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

class TrainedSet {
 public:
  // trained: those of the module that require a gradient; it must outlive this.
  TrainedSet(const std::vector<Parameter>& trained, const torch::nn::Module& module)
      : trained_(trained), frozen_(frozen_parameters(module)) {}

  // Throws Error that names the first parameter which is frozen now and was not, or the reverse.
  void require_unchanged() const;

 private:
  const std::vector<Parameter>& trained_;
  std::vector<Parameter> frozen_;
};

}  // namespace sidestream::parallel

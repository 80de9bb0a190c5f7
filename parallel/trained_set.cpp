#include "parallel/trained_set.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace sidestream::parallel {

void TrainedSet::require_unchanged() const {
  for (const auto& [name, tensor] : trained_) {
    if (tensor.requires_grad()) continue;
    throw core::Error(fmt::format(
        "Parameter '{}' was frozen since DataParallel was made (it requires no gradient): weight "
        "decay and moments would go on moving it. Make a new DataParallel after freezing.",
        name));
  }
  for (const auto& [name, tensor] : frozen_) {
    if (!tensor.requires_grad()) continue;
    throw core::Error(fmt::format(
        "Parameter '{}' requires a gradient, but was frozen when DataParallel was made: nothing "
        "would sum its gradients or update it. Make a new DataParallel after unfreezing.",
        name));
  }
}

}  // namespace sidestream::parallel

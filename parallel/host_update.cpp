#include "parallel/host_update.hpp"

#include <algorithm>

#include "core/optim/elements.hpp"

namespace sidestream::parallel {

double HostUpdate::update(const UpdateRequest& request) {
  const double norm = grad_norm(request.average);
  const double clip =
      grad_clip_ > 0 ? std::min(1.0, grad_clip_ / (norm + optim::kClipEpsilon)) : 1.0;
  optimizer_->update(
      {.step = request.step, .lr = request.lr, .gradient_scale = request.average * clip});
  return norm;
}

}  // namespace sidestream::parallel

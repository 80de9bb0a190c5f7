#include "launch/trainer/planted_faults.hpp"

#include <limits>

namespace sidestream::launch {
namespace {

// Of the first weight: its value doubles, halves or worse. As integers, so that nothing is rounded.
void flip_a_bit(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  torch::Tensor weight = model.parameters().front().view(-1).slice(0, 0, 1);
  const bool wide = weight.element_size() == 4;
  torch::Tensor bits = weight.view(wide ? torch::kInt32 : torch::kInt16);
  bits.bitwise_xor_(wide ? 1 << 22 : 1 << 6);
}

}  // namespace

void plant_before_batch(faults::FaultInjector& faults, std::int64_t step,
                        const torch::nn::Module& model, const parallel::DataParallel& replicas) {
  faults.pass(faults::Point::kData, step);
  if (!faults.flips_a_bit(step)) return;
  replicas.await_weights();
  flip_a_bit(model);
}

torch::Tensor plant_in_loss(faults::FaultInjector& faults, std::int64_t step, torch::Tensor loss) {
  const double factor = faults.loss_factor(step);
  if (factor != 1) loss = loss * factor;
  if (faults.makes_gradients_infinite(step)) {
    loss.register_hook([](const torch::Tensor& gradient) {
      return gradient * std::numeric_limits<double>::infinity();
    });
  }
  return loss;
}

}  // namespace sidestream::launch

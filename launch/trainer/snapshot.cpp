#include "launch/trainer/snapshot.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/optim/reduce.hpp"

namespace sidestream::launch {
namespace {

bool has_room_for(const NamedTensor& held, const NamedTensor& wanted) {
  return held.name == wanted.name && held.tensor.sizes() == wanted.tensor.sizes();
}

}  // namespace

void Snapshot::take(const std::vector<NamedTensor>& tensors) {
  const torch::NoGradGuard no_grad;
  tensors_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& wanted = tensors[i];
    if (!tensors_[i].tensor.defined() || !has_room_for(tensors_[i], wanted)) {
      tensors_[i] = {wanted.name,
                     torch::empty(wanted.tensor.sizes(), torch::dtype(wanted.tensor.dtype()))};
    }
    tensors_[i].tensor.copy_(wanted.tensor);
  }
}

// A plain loop: LibTorch would start threads of its own for the thread that writes.
void Snapshot::require_finite(std::int64_t step) const {
  for (const NamedTensor& named : tensors_) {
    const auto* values = named.tensor.const_data_ptr<float>();
    if (optim::all_finite({values, static_cast<std::size_t>(named.tensor.numel())})) continue;
    throw core::NumericsError(fmt::format(
        "step {}: not saved: {} holds values that are not finite. Go on from an older checkpoint",
        step, named.name));
  }
}

}  // namespace sidestream::launch

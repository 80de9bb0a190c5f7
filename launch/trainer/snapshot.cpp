#include "launch/trainer/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "core/optim/reduce.hpp"

namespace sidestream::launch {
namespace {

bool has_room_for(const NamedTensor& held, const NamedTensor& wanted) {
  return held.name == wanted.name && held.tensor.sizes() == wanted.tensor.sizes() &&
         held.tensor.scalar_type() == wanted.tensor.scalar_type();
}

bool is_finite(const torch::Tensor& tensor) {
  const auto elements = static_cast<std::size_t>(tensor.numel());
  if (tensor.scalar_type() == torch::kFloat32)
    return optim::all_finite(std::span(tensor.const_data_ptr<float>(), elements));
  return optim::all_finite(std::span(
      reinterpret_cast<const core::BFloat16*>(tensor.const_data_ptr<at::BFloat16>()), elements));
}

template <typename Element>
bool holds_nan(const torch::Tensor& tensor) {
  const Element* values = tensor.const_data_ptr<Element>();
  return std::any_of(values, values + tensor.numel(),
                     [](Element value) { return std::isnan(static_cast<double>(value)); });
}

bool has_nan(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return holds_nan<float>(tensor);
    case torch::kFloat64:
      return holds_nan<double>(tensor);
    case torch::kFloat16:
      return holds_nan<at::Half>(tensor);
    case torch::kBFloat16:
      return holds_nan<at::BFloat16>(tensor);
    default:  // whole numbers
      return false;
  }
}

}  // namespace

// A borrowed tensor is nobody's place for a copy.
void Snapshot::make_places(std::size_t count) {
  if (std::exchange(borrowed_, false)) tensors_.clear();
  tensors_.resize(count);
}

bool Snapshot::make_room(std::size_t place, const NamedTensor& wanted) {
  NamedTensor& held = tensors_[place];
  if (held.tensor.defined() && has_room_for(held, wanted)) return false;
  held = {wanted.name, torch::empty(wanted.tensor.sizes(), torch::dtype(wanted.tensor.dtype()))};
  return true;
}

void Snapshot::reserve(const std::vector<NamedTensor>& tensors) {
  make_places(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!make_room(i, tensors[i])) continue;
    std::memset(tensors_[i].tensor.mutable_data_ptr(), 0, tensors_[i].tensor.nbytes());
  }
}

void Snapshot::take(const std::vector<NamedTensor>& tensors) {
  const torch::NoGradGuard no_grad;
  make_places(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    make_room(i, tensors[i]);
    tensors_[i].tensor.copy_(tensors[i].tensor);
  }
}

void Snapshot::borrow(const std::vector<NamedTensor>& tensors) {
  tensors_ = on_host(tensors);
  borrowed_ = true;
}

// Plain loops: LibTorch would start threads of its own for the thread that writes.
void Snapshot::require_finite(std::int64_t step) const {
  for (const NamedTensor& named : tensors_) {
    if (is_finite(named.tensor)) continue;
    throw core::NumericsError(fmt::format(
        "step {}: not saved: {} holds values that are not finite. Go on from an older checkpoint",
        step, named.name));
  }
}

void Snapshot::require_no_nan(std::int64_t step) const {
  for (const NamedTensor& named : tensors_) {
    if (!has_nan(named.tensor)) continue;
    throw core::NumericsError(fmt::format(
        "step {}: not saved: {} holds values that are not numbers. Where they came in training, go "
        "on from an older checkpoint; where they are meant, keep something else in their place",
        step, named.name));
  }
}

}  // namespace sidestream::launch

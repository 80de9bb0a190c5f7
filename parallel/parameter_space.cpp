#include "parallel/parameter_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {
namespace {

torch::Tensor own_part(const torch::Tensor& elements, const OwnRange& own) {
  return elements.narrow(0, static_cast<std::int64_t>(own.first),
                         static_cast<std::int64_t>(own.count));
}

}  // namespace

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters, core::DType dtype,
                               StateMemory memory)
    : parameters_(std::move(parameters)), dtype_(dtype), memory_(std::move(memory)) {
  const torch::NoGradGuard no_grad;
  weights_ = make_flat(dtype_, dtype_, Holds::kWeights);
  if (has_master())
    masters_ = make_flat(core::DType::kFloat32, core::DType::kFloat32, Holds::kState);
  const bool copies = part().index == 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (copies) master(i).copy_(parameters_[i].tensor);
    if (copies && has_master()) weights_.views[i].copy_(masters_.views[i]);
    parameters_[i].tensor.set_data(weights_.views[i]);
  }
}

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters, core::DType dtype,
                               StateMemory memory, StateShards shards)
    : parameters_(std::move(parameters)),
      dtype_(dtype),
      memory_(std::move(memory)),
      shards_(std::make_unique<StateShards>(std::move(shards))) {
  const torch::NoGradGuard no_grad;
  if (has_master()) {
    masters_ = make_state(core::DType::kFloat32);
    for (std::size_t i = 0; i < size(); ++i)
      masters_.views[i].copy_(own_part(parameters_[i].tensor.flatten(), shards_->own(i)));
  }
  gathered_ = memory_.zeros_to_gather(shards_->plan().capacity_elements, dtype_, device());
  take_place(laid_out(gathered_));
  if (!has_master()) masters_are_weights();
}

// Padded as elements of type `layout` are.
FlatState ParameterSpace::make_flat(core::DType dtype, core::DType layout, Holds holds) {
  std::size_t total = 0;
  std::vector<std::size_t> offsets;
  for (const Parameter& parameter : parameters_) {
    offsets.push_back(total);
    total += padded_elements(parameter.elements(), layout);
  }
  FlatState state;
  state.flat = holds == Holds::kState && state_copies()
                   ? memory_.host_zeros(total, scalar_type_of(dtype))
                   : memory_.zeros(total, dtype, device());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& tensor = parameters_[i].tensor;
    state.views.push_back(
        state.flat.narrow(0, static_cast<std::int64_t>(offsets[i]), tensor.numel())
            .view(tensor.sizes()));
  }
  return state;
}

std::vector<std::string> ParameterSpace::names() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  return names;
}

std::vector<std::size_t> ParameterSpace::elements() const {
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters_) elements.push_back(parameter.elements());
  return elements;
}

void ParameterSpace::require_in_place() const {
  for (std::size_t i = 0; i < size(); ++i) {
    const torch::Tensor& now = parameters_[i].tensor;
    const torch::Tensor& view = weights(i);
    if (now.numel() == 0 ||
        (now.data_ptr() == view.data_ptr() && now.scalar_type() == view.scalar_type()))
      continue;
    throw core::Error(fmt::format(
        "Parameter '{}' was given other memory or another type since DataParallel was made "
        "(load(), to(), set_data()): updates would not reach it. Do that before, or write the "
        "values into states() and call refresh_parameters().",
        parameters_[i].name));
  }
}

void ParameterSpace::refresh_weights() {
  if (!has_master() || shards_) return;
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < size(); ++i) weights_.views[i].copy_(masters_.views[i]);
}

FlatState ParameterSpace::make_state(core::DType dtype) {
  if (!shards_) return make_flat(dtype, core::DType::kFloat32, Holds::kState);
  FlatState state;
  state.flat = make_slices(*shards_, scalar_type_of(dtype));
  state.views = shards_->views_of(state.flat);
  return state;
}

FlatState ParameterSpace::laid_out(const torch::Tensor& memory) const {
  const BucketPlan& plan = shards_->plan();
  FlatState state{.flat = memory.narrow(0, 0, static_cast<std::int64_t>(plan.total_elements)),
                  .views = {}};
  for (std::size_t i = 0; i < size(); ++i) {
    const torch::Tensor& tensor = parameters_[i].tensor;
    state.views.push_back(
        state.flat.narrow(0, static_cast<std::int64_t>(plan.offsets[i]), tensor.numel())
            .view(tensor.sizes()));
  }
  return state;
}

torch::Tensor ParameterSpace::make_slices(const StateShards& shards, torch::ScalarType type) const {
  if (state_copies()) return memory_.host_zeros(shards.elements(), type);
  return torch::zeros({static_cast<std::int64_t>(shards.elements())},
                      torch::dtype(type).device(device()));
}

void ParameterSpace::take_place(FlatState next) {
  const FlatState former = std::exchange(weights_, std::move(next));
  for (std::size_t i = 0; i < size(); ++i) {
    weights_.views[i].copy_(parameters_[i].tensor);
    parameters_[i].tensor.set_data(weights_.views[i]);
  }
}

void ParameterSpace::masters_are_weights() {
  masters_ = {.flat = weights_.flat, .views = {}};
  for (std::size_t i = 0; i < size(); ++i)
    masters_.views.push_back(own_part(weights_.views[i].flatten(), shards_->own(i)));
}

void ParameterSpace::move(StateShards shards,
                          const std::function<void(const VisitState&)>& each_state,
                          const torch::Tensor& scratch) {
  const torch::NoGradGuard no_grad;
  auto next = std::make_unique<StateShards>(std::move(shards));
  const auto move_state = [&](FlatState& state) {
    state.views.clear();
    const torch::Tensor place = make_slices(*next, state.flat.scalar_type());
    shards_->move(state.flat, *next, place);
    state.flat = place;
    state.views = next->views_of(state.flat);
  };
  each_state(move_state);
  if (has_master()) move_state(masters_);
  shards_ = std::move(next);
  const std::size_t bytes = shards_->plan().total_elements * core::size_of(dtype_);
  take_place(laid_out(scratch.nbytes() >= bytes
                          ? scratch.view(torch::kUInt8)
                                .narrow(0, 0, static_cast<std::int64_t>(bytes))
                                .view(scalar_type_of(dtype_))
                          : torch::empty_like(gathered_)));
  gathered_.zero_();  // padding, too
  take_place(laid_out(gathered_));
  if (!has_master()) masters_are_weights();
}

void ParameterSpace::load_weights(std::size_t index, const torch::Tensor& values) {
  const torch::NoGradGuard no_grad;
  weights(index).flatten().narrow(0, 0, values.numel()).copy_(values.flatten());
  if (has_master()) load_state(masters_, index, values);
}

void ParameterSpace::load_state(const FlatState& state, std::size_t index,
                                const torch::Tensor& values) const {
  const torch::NoGradGuard no_grad;
  OwnRange own = shards_->own(index);
  const auto there = static_cast<std::size_t>(values.numel());
  if (own.first >= there) return;
  own.count = std::min(own.count, there - own.first);
  state.views.at(index)
      .narrow(0, 0, static_cast<std::int64_t>(own.count))
      .copy_(own_part(values.flatten(), own));
}

}  // namespace sidestream::parallel

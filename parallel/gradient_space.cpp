#include "parallel/gradient_space.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

GradientSpace::GradientSpace(comm::Communicator& communicator,
                             const std::vector<Parameter>& parameters, core::DType dtype,
                             BucketPlan plan)
    : dtype_(dtype),
      model_(communicator.number_model()),
      plan_(std::move(plan)),
      memory_(communicator.allocate(plan_.capacity_elements * core::size_of(dtype))),
      capacity_elements_(plan_.capacity_elements) {
  for (const Parameter& parameter : parameters) shapes_.push_back(parameter.tensor.sizes().vec());
  const torch::Device device = parameters.front().tensor.device();
  const std::shared_ptr<std::byte> not_held(std::shared_ptr<void>(), memory_.data);
  flat_ = tensor_in(not_held, capacity_elements_, scalar_type_of(dtype_), device);
  make_views();
}

void GradientSpace::adopt(BucketPlan plan) {
  if (plan.total_elements > capacity_elements_ || plan.offsets.size() != views_.size()) {
    throw core::Error("A bucket plan was given for other parameters than the gradients have.");
  }
  plan_ = std::move(plan);
  make_views();
  clear_padding();
}

void* GradientSpace::bucket_data(std::size_t bucket) const {
  return memory_.data + plan_.buckets.at(bucket).offset_elements * core::size_of(dtype_);
}

void GradientSpace::make_views() {
  views_.clear();
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    views_.push_back(flat_
                         .narrow(0, static_cast<std::int64_t>(plan_.offsets[i]),
                                 c10::multiply_integers(shapes_[i]))
                         .view(shapes_[i]));
  }
}

// What another layout left between two gradients would be summed over ranks again and again.
void GradientSpace::clear_padding() {
  if (plan_.slices > 1) {  // it lies between blocks and at the end of buckets, too
    flat_.narrow(0, 0, static_cast<std::int64_t>(plan_.total_elements)).zero_();
    return;
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const auto elements = static_cast<std::size_t>(views_[i].numel());
    const std::size_t padding = padded_elements(elements, dtype_) - elements;
    flat_
        .narrow(0, static_cast<std::int64_t>(plan_.offsets[i] + elements),
                static_cast<std::int64_t>(padding))
        .zero_();
  }
}

}  // namespace sidestream::parallel

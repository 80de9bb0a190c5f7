#include "parallel/state_shards.hpp"

#include <utility>

namespace sidestream::parallel {
namespace {

std::int64_t signed_of(std::size_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

StateShards::StateShards(comm::Communicator& communicator, BucketPlan plan,
                         std::vector<std::size_t> elements, CurrentStream current_stream,
                         torch::Device device)
    : communicator_(communicator),
      plan_(std::move(plan)),
      elements_(std::move(elements)),
      ranges_(own_ranges(plan_, elements_, communicator.rank())),
      current_stream_(std::move(current_stream)),
      device_(device) {
  std::size_t offset = 0;
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    slice_offsets_.push_back(offset);
    offset += plan_.slice_elements(b);
  }
}

std::size_t StateShards::slice_begin(std::size_t bucket) const {
  return plan_.buckets.at(bucket).offset_elements +
         static_cast<std::size_t>(communicator_.rank()) * plan_.slice_elements(bucket);
}

std::vector<torch::Tensor> StateShards::views_of(const torch::Tensor& flat) const {
  std::vector<torch::Tensor> views;
  for (const OwnRange& own : ranges_)
    views.push_back(flat.narrow(0, signed_of(own.offset), signed_of(own.count)));
  return views;
}

void StateShards::gather(
    const torch::Tensor& flat,
    const std::function<void(std::size_t, const torch::Tensor&)>& visit) const {
  const torch::NoGradGuard no_grad;
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    const Bucket& bucket = plan_.buckets[b];
    const torch::Tensor mine =
        flat.narrow(0, signed_of(slice_offsets_[b]), signed_of(plan_.slice_elements(b)))
            .to(device_);
    const torch::Tensor all = torch::empty({signed_of(bucket.elements)}, mine.options());
    communicator_
        .all_gather(mine.const_data_ptr(), all.mutable_data_ptr(), mine.nbytes(),
                    core::DType::kUInt8,
                    {.bucket = static_cast<int>(b), .after = current_stream_()})
        .wait_on(current_stream_());
    for (const std::size_t i : bucket.parameters) {
      visit(i, all.narrow(0, signed_of(plan_.offsets[i] - bucket.offset_elements),
                          signed_of(elements_[i])));
    }
  }
}

void StateShards::move(const torch::Tensor& flat, const StateShards& next,
                       const torch::Tensor& to) const {
  gather(flat, [&](std::size_t i, const torch::Tensor& state) {
    const OwnRange& own = next.own(i);
    to.narrow(0, signed_of(own.offset), signed_of(own.count))
        .copy_(state.narrow(0, signed_of(own.first), signed_of(own.count)));
  });
}

// A sum of integers moves bits: all addends but one are zero.
void StateShards::merge(const torch::Tensor& doubles) const {
  communicator_
      .all_reduce(doubles.mutable_data_ptr(), static_cast<std::size_t>(doubles.numel()),
                  core::DType::kInt64, {.after = current_stream_()})
      .wait_on(current_stream_());
}

}  // namespace sidestream::parallel

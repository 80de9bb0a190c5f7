#include "parallel/state_shards.hpp"

#include <algorithm>
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

// What of each parameter of the bucket lies in the parts, rank after rank.
void StateShards::visit_part(const Part& part, const torch::Tensor& all,
                             const VisitPiece& visit) const {
  const Bucket& bucket = plan_.buckets[part.bucket];
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(plan_.slices); ++rank) {
    const std::size_t begin =
        bucket.offset_elements + rank * plan_.slice_elements(part.bucket) + part.first;
    for (const std::size_t i : bucket.parameters) {
      const std::size_t first = std::max(begin, plan_.offsets[i]);
      const std::size_t end = std::min(begin + part.count, plan_.offsets[i] + elements_[i]);
      if (first >= end) continue;
      visit({.parameter = i,
             .first = first - plan_.offsets[i],
             .values = all.narrow(0, signed_of(rank * part.count + first - begin),
                                  signed_of(end - first))});
    }
  }
}

void StateShards::gather(const torch::Tensor& flat, const VisitPiece& visit) const {
  const torch::NoGradGuard no_grad;
  const auto ranks = static_cast<std::size_t>(plan_.slices);
  const std::size_t most = std::max<std::size_t>(
      1, kGatheredBytes / (ranks * static_cast<std::size_t>(flat.itemsize())));
  std::size_t longest = 0;
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    longest = std::max(longest, plan_.slice_elements(b));
  const torch::Tensor room =
      torch::empty({signed_of(ranks * std::min(most, longest))}, flat.options().device(device_));
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    for (std::size_t first = 0; first < plan_.slice_elements(b); first += most) {
      const Part part{
          .bucket = b, .first = first, .count = std::min(most, plan_.slice_elements(b) - first)};
      const torch::Tensor mine =
          flat.narrow(0, signed_of(slice_offsets_[b] + first), signed_of(part.count)).to(device_);
      communicator_
          .all_gather(mine.const_data_ptr(), room.mutable_data_ptr(), mine.nbytes(),
                      core::DType::kUInt8,
                      {.bucket = static_cast<int>(b), .after = current_stream_()})
          .wait_on(current_stream_());
      visit_part(part, room, visit);
    }
  }
}

void StateShards::move(const torch::Tensor& flat, const StateShards& next,
                       const torch::Tensor& to) const {
  gather(flat, [&](const StatePiece& piece) {
    const OwnRange& own = next.own(piece.parameter);
    const auto there = static_cast<std::size_t>(piece.values.numel());
    const std::size_t first = std::max(own.first, piece.first);
    const std::size_t end = std::min(own.end(), piece.first + there);
    if (first >= end) return;
    to.narrow(0, signed_of(own.offset + first - own.first), signed_of(end - first))
        .copy_(piece.values.narrow(0, signed_of(first - piece.first), signed_of(end - first)));
  });
}

// A sum of integers moves bits: all addends but one are zero.
void StateShards::merge(const torch::Tensor& doubles) const {
  communicator_
      .all_reduce(doubles.mutable_data_ptr(), static_cast<std::size_t>(doubles.numel()),
                  core::DType::kInt64, comm::waited_for({.after = current_stream_()}))
      .wait_on(current_stream_());
}

}  // namespace sidestream::parallel

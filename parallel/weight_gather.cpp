#include "parallel/weight_gather.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "profiling/ranges/ranges.hpp"

namespace sidestream::parallel {

WeightGather::~WeightGather() {
  for (comm::Work& work : in_flight_) {
    try {
      work.wait();
    } catch (const std::exception&) {
      continue;  // see the header
    }
  }
}

void WeightGather::start() {
  const StateShards& shards = parameters_.shards();
  const BucketPlan& plan = shards.plan();
  const std::size_t element_bytes = core::size_of(parameters_.dtype());
  auto* weights = static_cast<std::byte*>(parameters_.flat_weights().mutable_data_ptr());
  in_flight_.resize(plan.buckets.size());
  for (std::size_t b = plan.buckets.size(); b-- > 0;) {
    in_flight_[b] = communicator_.all_gather(
        weights + shards.slice_begin(b) * element_bytes,
        weights + plan.buckets[b].offset_elements * element_bytes, plan.slice_elements(b),
        parameters_.dtype(),
        {.bucket = static_cast<int>(b), .model = model_, .after = current_stream_()});
  }
}

void WeightGather::wait_for(std::size_t parameter) {
  if (in_flight_.empty()) return;
  wait_for_bucket(parameters_.shards().plan().bucket_of_parameter.at(parameter));
}

void WeightGather::finish() {
  for (std::size_t b = in_flight_.size(); b-- > 0;) wait_for_bucket(b);
  in_flight_.clear();
}

std::int64_t WeightGather::take_blocked_ns() { return std::exchange(blocked_ns_, 0); }

void WeightGather::wait_for_bucket(std::size_t bucket) {
  if (in_flight_[bucket].done()) {  // nothing to be seen on a timeline
    in_flight_[bucket].wait_on(current_stream_());
    return;
  }
  const ranges::ScopedRange range(ranges::Phase::kWeightWait);
  const auto begin = std::chrono::steady_clock::now();
  in_flight_[bucket].wait_on(current_stream_());
  blocked_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sidestream::parallel

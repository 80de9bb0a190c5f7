#include "parallel/bucket_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/multiple.hpp"

namespace sidestream::parallel {
namespace {

constexpr std::size_t kSmallestElementBytes = 2;

void require_permutation(std::span<const std::size_t> order, std::size_t count) {
  std::vector<bool> seen(count, false);
  for (const std::size_t index : order) {
    if (index >= count || seen[index]) {
      throw core::Error(
          fmt::format("Bucket order: expected every parameter of {} once, found {} {}.", count,
                      index, index >= count ? "beyond the last" : "twice"));
    }
    seen[index] = true;
  }
  if (order.size() != count) {
    throw core::Error(
        fmt::format("Bucket order: expected {} parameters, found {}.", count, order.size()));
  }
}

// Puts parameters one behind another.
class PlanBuilder {
 public:
  PlanBuilder(std::span<const std::size_t> elements, core::DType dtype, int slices)
      : elements_(elements), dtype_(dtype) {
    plan_.slices = slices;
    plan_.offsets.resize(elements.size());
    plan_.bucket_of_parameter.resize(elements.size());
  }

  std::size_t bucket_count() const { return plan_.buckets.size(); }

  bool fits(std::size_t parameter, std::size_t limit_bytes) const {
    if (plan_.buckets.empty()) return false;
    const std::size_t end = place_of(parameter) + room_of(parameter);
    // What slices would be padded to anyway costs nothing.
    const std::size_t padded =
        plan_.slices > 1
            ? core::rounded_up(plan_.buckets.back().used_elements, plan_.step_elements())
            : 0;
    return end <= padded || end * core::size_of(dtype_) <= limit_bytes;
  }

  void open_bucket() {
    close_bucket();
    plan_.buckets.push_back({.parameters = {}, .offset_elements = plan_.total_elements});
  }

  void add(std::size_t parameter) {
    Bucket& bucket = plan_.buckets.back();
    const std::size_t place = place_of(parameter);
    plan_.offsets[parameter] = bucket.offset_elements + place;
    plan_.bucket_of_parameter[parameter] = plan_.buckets.size() - 1;
    bucket.parameters.push_back(parameter);
    bucket.used_elements = place + room_of(parameter);
  }

  BucketPlan finish(std::size_t most_buckets) {
    close_bucket();
    plan_.most_buckets = most_buckets;
    plan_.capacity_elements = plan_.total_elements;
    if (plan_.slices > 1) plan_.capacity_elements = blocks() + most_buckets * plan_.step_elements();
    return std::move(plan_);
  }

  // Elements of the blocks that parameters take in any order.
  std::size_t blocks() const {
    std::size_t sum = 0;
    for (const std::size_t elements : elements_) sum += core::rounded_up(elements, kSliceBlock);
    return sum;
  }

 private:
  std::size_t room_of(std::size_t parameter) const {
    if (plan_.slices == 1) return padded_elements(elements_[parameter], dtype_);
    return core::rounded_up(elements_[parameter], kAlignmentBytes / kSmallestElementBytes);
  }

  // In the last bucket, from its begin. See BucketPlan::slices.
  std::size_t place_of(std::size_t parameter) const {
    const std::size_t used = plan_.buckets.back().used_elements;
    const bool crosses = used % kSliceBlock + elements_[parameter] > kSliceBlock;
    return plan_.slices > 1 && crosses ? core::rounded_up(used, kSliceBlock) : used;
  }

  void close_bucket() {
    if (plan_.buckets.empty()) return;
    Bucket& last = plan_.buckets.back();
    last.elements = core::rounded_up(last.used_elements, plan_.step_elements());
    plan_.total_elements = last.offset_elements + last.elements;
  }

  std::span<const std::size_t> elements_;
  core::DType dtype_;
  BucketPlan plan_;
};

// Two buckets that follow each other hold more than the limit together, but for the first. Whole
// buckets have no padding of their own: any number of them takes the same memory.
std::size_t most_buckets(const PlanBuilder& builder, std::size_t parameters, core::DType dtype,
                         const BucketLimits& limits) {
  if (limits.slices == 1) return parameters;
  const std::size_t limit = limits.bucket_bytes / core::size_of(dtype);
  return limit == 0 ? parameters : std::min(parameters, 2 * builder.blocks() / limit + 3);
}

}  // namespace

std::size_t padded_elements(std::size_t elements, core::DType dtype) {
  return core::rounded_up(elements, kAlignmentBytes / core::size_of(dtype));
}

std::size_t padded_bytes(std::span<const std::size_t> elements, core::DType dtype) {
  std::size_t sum = 0;
  for (const std::size_t count : elements) sum += padded_elements(count, dtype);
  return sum * core::size_of(dtype);
}

std::vector<std::size_t> reverse_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return order;
}

std::vector<std::size_t> BucketPlan::order() const {
  std::vector<std::size_t> result;
  for (const Bucket& bucket : buckets) {
    result.insert(result.end(), bucket.parameters.begin(), bucket.parameters.end());
  }
  return result;
}

BucketPlan make_bucket_plan(std::span<const std::size_t> elements,
                            std::span<const std::size_t> order, core::DType dtype,
                            const BucketLimits& limits) {
  require_permutation(order, elements.size());
  PlanBuilder builder(elements, dtype, limits.slices);
  for (const std::size_t index : order) {
    const std::size_t limit_bytes = builder.bucket_count() <= 1
                                        ? std::min(limits.first_bucket_bytes, limits.bucket_bytes)
                                        : limits.bucket_bytes;
    if (!builder.fits(index, limit_bytes)) builder.open_bucket();
    builder.add(index);
  }
  return builder.finish(most_buckets(builder, elements.size(), dtype, limits));
}

BucketPlan cut_into_buckets(const BucketPlan& plan, std::span<const std::size_t> elements,
                            core::DType dtype, std::span<const std::size_t> parameters_per_bucket) {
  const std::vector<std::size_t> order = plan.order();
  require_permutation(order, elements.size());
  PlanBuilder builder(elements, dtype, plan.slices);
  std::size_t next = 0;
  for (const std::size_t parameters : parameters_per_bucket) {
    if (parameters > 0 && next < order.size()) builder.open_bucket();
    for (std::size_t i = 0; i < parameters && next < order.size(); ++i) builder.add(order[next++]);
  }
  const std::size_t cut =
      std::accumulate(parameters_per_bucket.begin(), parameters_per_bucket.end(), std::size_t{0});
  if (cut != order.size())
    throw core::Error(
        fmt::format("Buckets: expected {} parameters in all, found {}.", order.size(), cut));
  if (builder.bucket_count() > plan.most_buckets)
    throw core::Error(fmt::format("Buckets: expected at most {} of them, found {}.",
                                  plan.most_buckets, builder.bucket_count()));
  return builder.finish(plan.most_buckets);
}

}  // namespace sidestream::parallel

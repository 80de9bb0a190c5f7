#include "parallel/bucket_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

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

BucketPlan empty_plan(std::size_t parameters) {
  BucketPlan plan;
  plan.offsets.resize(parameters);
  plan.bucket_of_parameter.resize(parameters);
  return plan;
}

enum class Place { kLastBucket, kNewBucket };

void append(BucketPlan& plan, std::size_t parameter, std::size_t padded, Place place) {
  if (place == Place::kNewBucket)
    plan.buckets.push_back({.parameters = {}, .offset_elements = plan.total_elements});
  plan.offsets[parameter] = plan.total_elements;
  plan.bucket_of_parameter[parameter] = plan.buckets.size() - 1;
  plan.buckets.back().parameters.push_back(parameter);
  plan.buckets.back().elements += padded;
  plan.total_elements += padded;
}

}  // namespace

std::size_t padded_elements(std::size_t elements, core::DType dtype) {
  const std::size_t step = kAlignmentBytes / core::size_of(dtype);
  return (elements + step - 1) / step * step;
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
  BucketPlan plan = empty_plan(elements.size());
  for (const std::size_t index : order) {
    const std::size_t padded = padded_elements(elements[index], dtype);
    const std::size_t limit_bytes = plan.buckets.size() <= 1
                                        ? std::min(limits.first_bucket_bytes, limits.bucket_bytes)
                                        : limits.bucket_bytes;
    const bool fits = !plan.buckets.empty() &&
                      (plan.buckets.back().elements + padded) * core::size_of(dtype) <= limit_bytes;
    append(plan, index, padded, fits ? Place::kLastBucket : Place::kNewBucket);
  }
  return plan;
}

BucketPlan cut_into_buckets(std::span<const std::size_t> elements,
                            std::span<const std::size_t> order, core::DType dtype,
                            std::span<const std::size_t> parameters_per_bucket) {
  require_permutation(order, elements.size());
  BucketPlan plan = empty_plan(elements.size());
  std::size_t next = 0;
  for (const std::size_t parameters : parameters_per_bucket) {
    for (std::size_t i = 0; i < parameters && next < order.size(); ++i, ++next) {
      append(plan, order[next], padded_elements(elements[order[next]], dtype),
             i > 0 ? Place::kLastBucket : Place::kNewBucket);
    }
  }
  const std::size_t cut =
      std::accumulate(parameters_per_bucket.begin(), parameters_per_bucket.end(), std::size_t{0});
  if (cut != order.size())
    throw core::Error(
        fmt::format("Buckets: expected {} parameters in all, found {}.", order.size(), cut));
  return plan;
}

}  // namespace sidestream::parallel

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
  BucketPlan plan;
  plan.offsets.resize(elements.size());
  plan.bucket_of_parameter.resize(elements.size());
  for (const std::size_t index : order) {
    const std::size_t padded = padded_elements(elements[index], dtype);
    const std::size_t limit_bytes = plan.buckets.size() <= 1
                                        ? std::min(limits.first_bucket_bytes, limits.bucket_bytes)
                                        : limits.bucket_bytes;
    const bool fits = !plan.buckets.empty() &&
                      (plan.buckets.back().elements + padded) * core::size_of(dtype) <= limit_bytes;
    if (!fits) plan.buckets.push_back({.parameters = {}, .offset_elements = plan.total_elements});
    plan.offsets[index] = plan.total_elements;
    plan.bucket_of_parameter[index] = plan.buckets.size() - 1;
    plan.buckets.back().parameters.push_back(index);
    plan.buckets.back().elements += padded;
    plan.total_elements += padded;
  }
  return plan;
}

}  // namespace sidestream::parallel

// Which gradients travel together: a pure function of sizes, order and limits, so that all ranks
// find the same plan.
//
// A bucket is a contiguous range of the flat gradient buffer. Every parameter starts at a 64-byte
// boundary; a bucket takes parameters in the given order until the next one would exceed its limit.
// A parameter larger than the limit has a bucket of its own. The first bucket has its own, smaller
// limit: the first collective starts early.
//
// Where each rank keeps a slice of every bucket (ZeRO-1 without shared memory), slices are equal
// and whole blocks of optim::kSumBlock elements, and parameters are placed so that none of their
// own blocks is cut: a slice may end inside a parameter, but the sums of squares are those of whole
// parameters. What fits into the padding that a bucket has by that goes into it, beyond its limit.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/optim/reduce.hpp"

namespace sidestream::parallel {

inline constexpr std::size_t kAlignmentBytes = 64;            // of every parameter in a flat buffer
inline constexpr std::size_t kSliceBlock = optim::kSumBlock;  // elements

// Elements that a parameter takes in a flat buffer.
std::size_t padded_elements(std::size_t elements, core::DType dtype);
// Bytes of a flat buffer of such parameters.
std::size_t padded_bytes(std::span<const std::size_t> elements, core::DType dtype);

struct BucketLimits {
  std::size_t bucket_bytes = 0;  // 0: every parameter alone
  std::size_t first_bucket_bytes = 0;
  int slices = 1;  // of every bucket, one a rank; 1: ranks keep whole buckets
};

struct Bucket {
  std::vector<std::size_t> parameters;  // indices, in the order of their gradients in memory
  std::size_t offset_elements = 0;      // in the flat buffer
  std::size_t elements = 0;             // padding included
  std::size_t used_elements = 0;        // without the end that makes its slices equal
};

struct BucketPlan {
  std::vector<Bucket> buckets;       // in the order of their collectives
  std::vector<std::size_t> offsets;  // of each parameter's gradient in the flat buffer, in elements
  std::vector<std::size_t> bucket_of_parameter;
  std::size_t total_elements = 0;     // of the flat buffer
  std::size_t capacity_elements = 0;  // that every plan of the same sizes and limits fits into
  std::size_t most_buckets = 0;       // that fit into it however they are cut
  int slices = 1;                     // into which each bucket is cut

  std::size_t slice_elements(std::size_t bucket) const {
    return buckets.at(bucket).elements / static_cast<std::size_t>(slices);
  }
  // Elements that every bucket is a multiple of.
  std::size_t step_elements() const {
    return slices == 1 ? 1 : static_cast<std::size_t>(slices) * kSliceBlock;
  }

  // Parameters in the order in which buckets are filled.
  std::vector<std::size_t> order() const;
};

// elements[i]: of parameter i. order: a permutation of the indices. Throws Error when it is none.
BucketPlan make_bucket_plan(std::span<const std::size_t> elements,
                            std::span<const std::size_t> order, core::DType dtype,
                            const BucketLimits& limits);

// The same parameters, order, slices and memory as a plan's, with so many parameters in each
// bucket. Throws Error when they are not all parameters, or the buckets more than
// plan.most_buckets.
BucketPlan cut_into_buckets(const BucketPlan& plan, std::span<const std::size_t> elements,
                            core::DType dtype, std::span<const std::size_t> parameters_per_bucket);

// n-1 .. 0: gradients become ready in about the reverse order of use.
std::vector<std::size_t> reverse_order(std::size_t count);

}  // namespace sidestream::parallel

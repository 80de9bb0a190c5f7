#include "parallel/bucket_size.hpp"

#include <algorithm>

namespace sidestream::parallel {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kLargest = 25 * kMebibyte;
constexpr std::size_t kSmallest = kMebibyte;
constexpr std::size_t kSmallestPerRank = kMebibyte / 4;
constexpr std::size_t kBucketsWanted = 16;

std::size_t bytes_of(double mebibytes) { return static_cast<std::size_t>(mebibytes * kMebibyte); }

}  // namespace

std::size_t automatic_bucket_bytes(std::size_t gradient_bytes, int ranks) {
  const std::size_t smallest =
      std::max(kSmallest, static_cast<std::size_t>(ranks) * kSmallestPerRank);
  return std::max(smallest, std::min(kLargest, gradient_bytes / kBucketsWanted));
}

BucketLimits bucket_limits(const DataParallelConfig& config, std::size_t gradient_bytes, int ranks,
                           Slicing slicing) {
  const int slices = slicing == Slicing::kByRank ? ranks : 1;
  if (config.gradient_sync == GradientSync::kPerParameter) return {.slices = slices};
  return {.bucket_bytes = config.bucket_mb ? bytes_of(*config.bucket_mb)
                                           : automatic_bucket_bytes(gradient_bytes, ranks),
          .first_bucket_bytes = bytes_of(config.first_bucket_mb),
          .slices = slices};
}

}  // namespace sidestream::parallel

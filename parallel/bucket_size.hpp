// The size of a bucket when the user names none.
#pragma once

#include <cstddef>

#include "parallel/bucket_plan.hpp"
#include "parallel/config.hpp"

namespace sidestream::parallel {

// At least 16 buckets, so that the last one, which nothing hides, carries little (but where one
// parameter is larger: an embedding that is the head, too, has its whole gradient last); at most 25
// MiB, where transfers have reached full bandwidth; at least 256 KiB for each rank, since a ring
// cuts a bucket into one piece a rank.
std::size_t automatic_bucket_bytes(std::size_t gradient_bytes, int ranks);

// What a configuration asks for: per-parameter synchronisation puts every parameter into a bucket
// of its own.
enum class Slicing {
  kNone,    // whole buckets
  kByRank,  // every bucket in as many slices as there are ranks
};
BucketLimits bucket_limits(const DataParallelConfig& config, std::size_t gradient_bytes, int ranks,
                           Slicing slicing = Slicing::kNone);

}  // namespace sidestream::parallel

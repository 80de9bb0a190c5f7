// Counts the gradients of a backward: which are there, which bucket is full, and in which order
// they came.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/bucket_plan.hpp"

namespace sidestream::parallel {

class BucketReadiness {
 public:
  // Forgets everything; the plan is only read here.
  void begin(const BucketPlan& plan);

  bool has(std::size_t parameter) const { return here_.at(parameter); }

  // Throws Error for a parameter that is there already. Says how its bucket stands now.
  enum class Bucket { kOpen, kFull };
  Bucket add(std::size_t parameter);

  std::size_t bucket_of(std::size_t parameter) const { return bucket_of_parameter_.at(parameter); }
  std::vector<std::size_t> missing() const;  // in registration order
  const std::vector<std::size_t>& order() const noexcept { return order_; }  // of arrival

 private:
  std::vector<std::size_t> bucket_of_parameter_;
  std::vector<std::size_t> open_;  // gradients that a bucket waits for
  std::vector<bool> here_;
  std::vector<std::size_t> order_;
};

}  // namespace sidestream::parallel

#include "parallel/bucket_readiness.hpp"

#include "core/base/error.hpp"

namespace sidestream::parallel {

void BucketReadiness::begin(const BucketPlan& plan) {
  bucket_of_parameter_ = plan.bucket_of_parameter;
  open_.clear();
  for (const parallel::Bucket& bucket : plan.buckets) open_.push_back(bucket.parameters.size());
  here_.assign(bucket_of_parameter_.size(), false);
  order_.clear();
}

BucketReadiness::Bucket BucketReadiness::add(std::size_t parameter) {
  if (here_.at(parameter)) throw core::Error("A gradient was counted twice in one backward.");
  here_[parameter] = true;
  order_.push_back(parameter);
  std::size_t& open = open_[bucket_of_parameter_[parameter]];
  return --open == 0 ? Bucket::kFull : Bucket::kOpen;
}

std::vector<std::size_t> BucketReadiness::missing() const {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < here_.size(); ++i) {
    if (!here_[i]) missing.push_back(i);
  }
  return missing;
}

}  // namespace sidestream::parallel

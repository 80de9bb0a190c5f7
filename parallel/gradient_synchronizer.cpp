#include "parallel/gradient_synchronizer.hpp"

#include "core/base/error.hpp"
#include "parallel/blocking_synchronizer.hpp"
#include "parallel/overlapped_synchronizer.hpp"

namespace sidestream::parallel {

// Where ranks keep slices, each one's sum comes where its own gradients lay.
comm::Work GradientSynchronizer::start(std::size_t bucket, comm::CollectiveOptions options) {
  const BucketPlan& plan = gradients_.plan();
  const core::DType dtype = gradients_.dtype();
  auto* data = static_cast<std::byte*>(gradients_.bucket_data(bucket));
  options.bucket = static_cast<int>(bucket);
  options.model = gradients_.model();
  options.after = current_stream_();
  if (plan.slices == 1)
    return communicator_.all_reduce(data, plan.buckets.at(bucket).elements, dtype, options);
  const std::size_t slice = plan.slice_elements(bucket);
  const std::size_t before = static_cast<std::size_t>(communicator_.rank()) * slice;
  return communicator_.reduce_scatter(data, data + before * core::size_of(dtype), slice, dtype,
                                      options);
}

void GradientSynchronizer::wait(comm::Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work.wait_on(current_stream_());
  blocked_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

std::unique_ptr<GradientSynchronizer> make_gradient_synchronizer(GradientSync kind,
                                                                 comm::Communicator& communicator,
                                                                 const GradientSpace& gradients,
                                                                 CurrentStream current_stream) {
  switch (kind) {
    case GradientSync::kPerParameter:  // the plan has one bucket a parameter
    case GradientSync::kBucketed:
      return std::make_unique<BlockingSynchronizer>(communicator, gradients,
                                                    std::move(current_stream));
    case GradientSync::kOverlapped:
      return std::make_unique<OverlappedSynchronizer>(communicator, gradients,
                                                      std::move(current_stream));
  }
  throw core::ConfigError("Gradient synchronisation: an unknown kind was asked for.");
}

}  // namespace sidestream::parallel

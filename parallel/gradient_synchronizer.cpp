#include "parallel/gradient_synchronizer.hpp"

#include "core/base/error.hpp"
#include "parallel/blocking_synchronizer.hpp"
#include "parallel/overlapped_synchronizer.hpp"

namespace sidestream::parallel {

comm::Work GradientSynchronizer::start(std::size_t bucket) {
  return communicator_.all_reduce(gradients_.bucket_data(bucket),
                                  gradients_.plan().buckets.at(bucket).elements, gradients_.dtype(),
                                  {.bucket = static_cast<int>(bucket), .after = current_stream_()});
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

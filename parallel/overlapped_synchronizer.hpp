// A bucket's all-reduce starts inside backward, as soon as its gradients and all earlier buckets'
// are there: all ranks start them in the order of the plan, whatever the order of their gradients.
#pragma once

#include <vector>

#include "parallel/gradient_synchronizer.hpp"

namespace sidestream::parallel {

class OverlappedSynchronizer : public GradientSynchronizer {
 public:
  OverlappedSynchronizer(comm::Communicator& communicator, const GradientSpace& gradients,
                         CurrentStream current_stream)
      : GradientSynchronizer(communicator, gradients, std::move(current_stream)) {}
  // Waits for what is in flight, since the memory belongs to it; a failure is dropped, somebody
  // else reports it.
  ~OverlappedSynchronizer() override;

  void begin() override;
  void bucket_ready(std::size_t bucket) override;
  void finish(const std::function<void(std::size_t)>& on_reduced) override;
  std::vector<std::optional<comm::WorkSpan>> spans() const override;

 private:
  std::vector<bool> ready_;
  std::vector<comm::Work> in_flight_;  // of buckets 0, 1, ...
};

}  // namespace sidestream::parallel

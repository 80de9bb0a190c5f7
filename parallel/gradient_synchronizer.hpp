// When the gradients of all ranks are summed: a strategy chosen once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/config.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/gradient_space.hpp"

namespace sidestream::parallel {

class GradientSynchronizer {
 public:
  virtual ~GradientSynchronizer() = default;
  GradientSynchronizer(const GradientSynchronizer&) = delete;
  GradientSynchronizer& operator=(const GradientSynchronizer&) = delete;

  // Before the backward of the last micro-step.
  virtual void begin() = 0;

  // Inside the last backward or after it: the bucket's gradients of this rank are complete. Every
  // bucket once, in any order; its memory must not be written until finish() has passed it.
  virtual void bucket_ready(std::size_t bucket) = 0;

  // After the last backward, when every bucket has been ready. Blocks until all sums are there, or
  // puts the current stream of a device behind them, and calls on_reduced(bucket) for each in the
  // order of the plan. Throws CollectiveError, PeerError.
  virtual void finish(const std::function<void(std::size_t)>& on_reduced) = 0;

  // When the collectives of the last finish() ran, by bucket; nothing for those that the host did
  // not see. Empty where nothing overlaps.
  virtual std::vector<std::optional<comm::WorkSpan>> spans() const { return {}; }

  // How long the calling thread was blocked by collectives since begin().
  std::int64_t blocked_ns() const noexcept { return blocked_ns_; }

 protected:
  GradientSynchronizer(comm::Communicator& communicator, const GradientSpace& gradients,
                       CurrentStream current_stream)
      : communicator_(communicator),
        gradients_(gradients),
        current_stream_(std::move(current_stream)) {}

  std::size_t bucket_count() const { return gradients_.plan().buckets.size(); }
  // options: all but bucket, model and stream, which are filled in.
  comm::Work start(std::size_t bucket, comm::CollectiveOptions options = {});
  void wait(comm::Work& work);
  void reset_clock() noexcept { blocked_ns_ = 0; }

 private:
  comm::Communicator& communicator_;
  const GradientSpace& gradients_;
  CurrentStream current_stream_;
  std::int64_t blocked_ns_ = 0;
};

// The communicator and the gradients must outlive the result.
std::unique_ptr<GradientSynchronizer> make_gradient_synchronizer(GradientSync kind,
                                                                 comm::Communicator& communicator,
                                                                 const GradientSpace& gradients,
                                                                 CurrentStream current_stream);

}  // namespace sidestream::parallel

// The batches of a step in memory that stays where it is: what is captured once reads them there in
// every replay. They come from the slots of a feed, which meanwhile fills the slots of the next
// step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "launch/device/device_feed.hpp"

namespace sidestream::launch {

class StaticBatches {
 public:
  // Slots that the feed needs, so that copies from the host run beside a whole step.
  static int slots_for(int micro_steps) { return std::max(DeviceFeed::kSlots, micro_steps); }

  // The feed outlives this.
  StaticBatches(DeviceFeed& feed, int micro_steps);

  // Takes the next batches and queues their copies on the current stream, behind the step before.
  void take();

  const DeviceBatch& at(int micro_step) const {
    return batches_.at(static_cast<std::size_t>(micro_step));
  }
  std::uint64_t epoch() const { return batches_.back().epoch; }

 private:
  DeviceFeed& feed_;
  std::vector<DeviceBatch> batches_;
};

}  // namespace sidestream::launch

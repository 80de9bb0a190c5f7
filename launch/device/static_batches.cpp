#include "launch/device/static_batches.hpp"

namespace sidestream::launch {

StaticBatches::StaticBatches(DeviceFeed& feed, int micro_steps) : feed_(feed) {
  const FeedConfig& config = feed.config();
  const auto options = torch::dtype(torch::kInt64).device(config.device);
  for (int i = 0; i < micro_steps; ++i) {
    batches_.push_back(
        {.inputs_bt = torch::zeros({config.batch_size, config.sequence_length}, options),
         .targets_bt = torch::zeros({config.batch_size, config.sequence_length}, options)});
  }
}

void StaticBatches::take() {
  for (DeviceBatch& batch : batches_) {
    const DeviceBatch slot = feed_.next();
    batch.inputs_bt.copy_(slot.inputs_bt);
    batch.targets_bt.copy_(slot.targets_bt);
    batch.epoch = slot.epoch;
    feed_.consumed();
  }
}

}  // namespace sidestream::launch

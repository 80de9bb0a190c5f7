#include "launch/device/device_feed.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::microseconds kBetweenLooksAtSlots{20};

}  // namespace

DeviceFeed::DeviceFeed(data::Loader& loader, std::shared_ptr<comm::cuda::Driver> driver,
                       const FeedConfig& config, parallel::CurrentStream current_stream)
    : config_(config),
      loader_(loader),
      driver_(std::move(driver)),
      current_stream_(std::move(current_stream)),
      copy_stream_(driver_, comm::cuda::Priority::kNormal),
      events_(std::make_shared<comm::cuda::EventPool>(driver_)) {
  const auto options = torch::dtype(torch::kInt64).device(config.device);
  for (int i = 0; i < config.slots; ++i) {
    slots_.push_back(
        {.batch = {.inputs_bt = torch::zeros({config.batch_size, config.sequence_length}, options),
                   .targets_bt =
                       torch::zeros({config.batch_size, config.sequence_length}, options)},
         .filled = comm::cuda::OwnedEvent(driver_),
         .free = comm::cuda::OwnedEvent(driver_)});
    slots_.back().free.record(current_stream_());  // the zeros come first
    slots_.back().used = true;
  }
}

// The slots go back to LibTorch's allocator, which knows nothing of the copy stream.
DeviceFeed::~DeviceFeed() {
  try {
    driver_->synchronize(copy_stream_.get());
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

DeviceBatch DeviceFeed::next() {
  if (filled_ == taken_) fill_next();
  const Slot& slot = slots_[taken_ % slots_.size()];
  slot.filled.hold_back(current_stream_());
  ++taken_;
  return slot.batch;
}

void DeviceFeed::consumed() {
  Slot& slot = slots_[(taken_ - 1) % slots_.size()];
  slot.free.record(current_stream_());
  slot.used = true;
  if (filled_ == taken_) fill_next();
}

void DeviceFeed::fill_next() {
  const auto start = std::chrono::steady_clock::now();
  let_go_of_copied();
  read_and_copy();
  cost_ns_ += static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

void DeviceFeed::read_and_copy() {
  data::Batch batch = [&] {
    const ranges::ScopedRange range(ranges::Phase::kData);
    return loader_.next();
  }();
  const ranges::ScopedRange range(ranges::Phase::kHostToDevice);
  Slot& slot = slots_[filled_ % slots_.size()];
  copy(batch, slot);
  auto done = comm::cuda::EventPool::take(events_);
  done->record(copy_stream_.get());
  copying_.push_back({.done = std::move(done), .batch = std::move(batch)});
  ++filled_;
}

void DeviceFeed::copy(const data::Batch& batch, Slot& slot) {
  if (slot.used) slot.free.hold_back(copy_stream_.get());
  driver_->copy(slot.batch.inputs_bt.mutable_data_ptr(), batch.inputs().data(),
                batch.inputs().size_bytes(), copy_stream_.get());
  driver_->copy(slot.batch.targets_bt.mutable_data_ptr(), batch.targets().data(),
                batch.targets().size_bytes(), copy_stream_.get());
  slot.batch.epoch = batch.epoch();
  slot.filled.record(copy_stream_.get());
}

void DeviceFeed::let_go_of_copied() {
  while (!copying_.empty() && copying_.front().done->done()) copying_.pop_front();
  while (copying_.size() >= kBatchesHeld - 1) {
    if (copying_.front().done->done()) {
      copying_.pop_front();
    } else {
      std::this_thread::sleep_for(kBetweenLooksAtSlots);
    }
  }
}

}  // namespace sidestream::launch

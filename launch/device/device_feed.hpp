// Batches on the device, one ahead: while one computes, the next is copied into another fixed slot
// on a copy stream of its own. Order is kept by events; the host waits only for data, or when it is
// far ahead of the copies.
//
//   const DeviceBatch batch = feed.next();   // the current stream goes on when the batch is there
//   ... queue everything that reads it ...
//   feed.consumed();                         // the slot may be filled again after that
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "comm/cuda/handles.hpp"
#include "core/data/loader.hpp"
#include "parallel/device_tools.hpp"

namespace sidestream::launch {

struct DeviceBatch {
  torch::Tensor inputs_bt;  // int64, in a slot: valid until consumed()
  torch::Tensor targets_bt;
  std::uint64_t epoch = 0;
};

struct FeedConfig {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 1;
  torch::Device device = torch::kCPU;
  int slots = 2;  // at least kSlots: how many batches are copied before the first is used again
};

class DeviceFeed {
 public:
  static constexpr int kSlots = 2;        // the fewest
  static constexpr int kBatchesHeld = 4;  // LoaderConfig::max_held must be at least this

  DeviceFeed(data::Loader& loader, std::shared_ptr<comm::cuda::Driver> driver,
             const FeedConfig& config, parallel::CurrentStream current_stream);
  ~DeviceFeed();  // waits for copies into the slots
  DeviceFeed(const DeviceFeed&) = delete;
  DeviceFeed& operator=(const DeviceFeed&) = delete;

  DeviceBatch next();
  void consumed();

  const FeedConfig& config() const noexcept { return config_; }

  // What data have cost the host so far: waiting for the loader, and starting copies (which lasts
  // as long as they do where batches are pageable).
  std::uint64_t reader_cost_ns() const noexcept { return cost_ns_; }

 private:
  struct Slot {
    DeviceBatch batch;
    comm::cuda::OwnedEvent filled;
    comm::cuda::OwnedEvent free;
    bool used = false;  // `free` has been recorded
  };
  struct Copying {
    std::shared_ptr<comm::cuda::OwnedEvent> done;
    data::Batch batch;  // host memory that the copy reads
  };

  void fill_next();
  void read_and_copy();
  void copy(const data::Batch& batch, Slot& slot);
  void let_go_of_copied();

  FeedConfig config_;
  data::Loader& loader_;
  std::shared_ptr<comm::cuda::Driver> driver_;
  parallel::CurrentStream current_stream_;
  comm::cuda::OwnedStream copy_stream_;
  std::shared_ptr<comm::cuda::EventPool> events_;
  std::vector<Slot> slots_;
  std::deque<Copying> copying_;
  std::size_t filled_ =
      0;  // batches copied so far; the next goes into slot filled_ mod their number
  std::size_t taken_ = 0;  // handed out so far
  std::uint64_t cost_ns_ = 0;
};

}  // namespace sidestream::launch

// Batches in the order that sample_order.hpp defines, read ahead of time by worker threads.
//
//   auto loader = Loader(LoaderConfig{.batch_size = 16, .sequence_length = 256, .workers = 2},
//                        open_source(folder, Split::kTrain));
//   Batch batch = loader.next();     // int64 inputs and targets [B, T]; valid until `batch` goes
//   away
//
// What comes out does not depend on workers or prefetch. The loader owns its threads; batches share
// the memory with it and may outlive it. next() is called by one thread at a time; a batch may be
// released by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/data/sample_order.hpp"
#include "core/data/sample_source.hpp"
#include "core/data/slot_ring.hpp"
#include "core/data/split.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::data {

enum class FixBatch : std::uint8_t { kOff, kOn };

struct LoaderConfig {
  std::uint64_t batch_size = 1;       // B, rows of one rank in one micro-step
  std::uint64_t sequence_length = 1;  // T
  std::uint64_t grad_accumulation = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Shuffle shuffle = Shuffle::kOn;
  std::uint64_t seed = 0;
  FixBatch fix_batch = FixBatch::kOff;  // every batch is the first of step 1
  std::uint64_t first_step = 1;         // where next() starts: 1, or the step after a checkpoint's
  std::uint64_t first_sample = 0;       // taken before step 1, by a run with another B G R
  int workers = 1;                      // 0: next() reads by itself
  int prefetch = 2;                     // batches that workers may be ahead
  int max_held = 2;                     // batches that the caller keeps at the same time
  SlotAllocator allocator = SlotAllocator::heap();
  std::function<void(int worker)> on_worker_start = {};  // for pinning; may be empty

  // Throws ConfigError that names the field.
  void validate() const;
  // Of all batches that are there at the same time.
  std::size_t memory_bytes() const;
};

// A filled slot; gives it back when it goes away.
class Batch {
 public:
  Batch(Batch&& other) noexcept { *this = std::move(other); }
  Batch& operator=(Batch&& other) noexcept;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { release(); }

  // B T elements each, row by row, 64-byte aligned. Not to be written.
  std::span<const std::int64_t> inputs() const noexcept { return inputs_; }
  std::span<const std::int64_t> targets() const noexcept { return targets_; }

  std::uint64_t step() const noexcept { return place_.step; }
  std::uint64_t micro_step() const noexcept { return place_.micro_step; }
  std::uint64_t epoch() const noexcept { return epoch_; }  // of the first row

  // Gives the slot back early; inputs() and targets() are empty afterwards.
  void release() noexcept;

 private:
  friend class Loader;
  Batch() = default;

  std::shared_ptr<SlotRing> ring_;
  std::uint64_t ticket_ = 0;
  BatchPlace place_;
  std::uint64_t epoch_ = 0;
  std::span<const std::int64_t> inputs_;
  std::span<const std::int64_t> targets_;
};

class Loader {
 public:
  // Throws ConfigError for an impossible configuration and DataError when the source has less than
  // one step's batch.
  Loader(LoaderConfig config, std::shared_ptr<const SampleSource> source);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  // The next micro-batch. Throws what reading it threw; Error when max_held batches are held
  // already.
  Batch next();

  std::uint64_t samples() const noexcept { return order_.samples; }  // n, of one epoch
  const SampleOrder& order() const noexcept { return order_; }

  // How long next() has blocked, since the start and in the last call.
  std::uint64_t reader_cost_ns() const noexcept { return reader_cost_ns_; }
  std::uint64_t last_reader_cost_ns() const noexcept { return last_reader_cost_ns_; }

 private:
  void work(int worker) noexcept;
  void stop() noexcept;
  void fill(std::uint64_t ticket, std::byte* slot) const;
  void fill_and_publish(std::uint64_t ticket, std::byte* slot) noexcept;
  BatchPlace place_of(std::uint64_t ticket) const;
  std::span<std::int64_t> inputs_in(std::byte* slot) const;
  std::span<std::int64_t> targets_in(std::byte* slot) const;
  Batch batch_of(std::uint64_t ticket, std::byte* slot) const;

  LoaderConfig config_;
  std::shared_ptr<const SampleSource> source_;
  BatchGeometry geometry_;
  SampleOrder order_;
  std::size_t half_bytes_;  // inputs of one slot, padded
  std::shared_ptr<SlotRing> ring_;
  std::uint64_t next_out_ = 0;
  std::uint64_t reader_cost_ns_ = 0;
  std::uint64_t last_reader_cost_ns_ = 0;
  ranges::LayerName load_range_{"load"};  // on a timeline, whoever loads
  std::atomic<std::uint64_t> next_in_{0};
  std::vector<std::thread> workers_;
};

// All shards of a split of a data folder. Throws DataError as TokenStream::open does.
std::shared_ptr<const SampleSource> open_source(const std::filesystem::path& folder, Split split);

}  // namespace sidestream::data

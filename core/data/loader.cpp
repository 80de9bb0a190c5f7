#include "core/data/loader.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/multiple.hpp"
#include "core/base/worker_thread.hpp"
#include "core/data/parallel_for.hpp"

namespace sidestream::data {
namespace {

using Clock = std::chrono::steady_clock;

void require(bool holds, const char* what, std::uint64_t found) {
  if (!holds)
    throw core::ConfigError(std::string("loader: ") + what + ", found " + std::to_string(found));
}

std::size_t padded_bytes(const LoaderConfig& config) {
  return core::rounded_up(config.batch_size * config.sequence_length * sizeof(std::int64_t),
                          SlotRing::kAlignmentBytes);
}

LoaderConfig checked(LoaderConfig config) {
  config.validate();
  return config;
}

std::size_t slots_for(const LoaderConfig& config) {
  return static_cast<std::size_t>(config.max_held + (config.workers > 0 ? config.prefetch : 0));
}

}  // namespace

void LoaderConfig::validate() const {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 24;
  require(batch_size >= 1 && batch_size <= kLimit, "batch size must be from 1 to 2^24", batch_size);
  require(sequence_length >= 1 && sequence_length <= kLimit,
          "sequence length must be from 1 to 2^24", sequence_length);
  require(grad_accumulation >= 1 && grad_accumulation <= kLimit,
          "gradient accumulation must be from 1 to 2^24", grad_accumulation);
  require(world_size >= 1, "there must be at least one rank", world_size);
  require(rank < world_size, "rank must be below the number of ranks", rank);
  require(first_step >= 1, "steps count from 1", first_step);
  require(workers >= 0 && workers <= 1024, "workers must be from 0 to 1024",
          static_cast<std::uint64_t>(workers));
  require(prefetch >= 1 && prefetch <= 4096, "prefetch must be from 1 to 4096",
          static_cast<std::uint64_t>(prefetch));
  require(max_held >= 1 && max_held <= 4096, "max_held must be from 1 to 4096",
          static_cast<std::uint64_t>(max_held));
}

std::size_t LoaderConfig::memory_bytes() const {
  return slots_for(*this) * 2 * padded_bytes(*this);
}

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this == &other) return *this;
  release();
  ring_ = std::move(other.ring_);
  ticket_ = other.ticket_;
  place_ = other.place_;
  epoch_ = other.epoch_;
  inputs_ = std::exchange(other.inputs_, {});
  targets_ = std::exchange(other.targets_, {});
  return *this;
}

void Batch::release() noexcept {
  if (ring_) ring_->release(ticket_);
  ring_.reset();
  inputs_ = {};
  targets_ = {};
}

Loader::Loader(LoaderConfig config, std::shared_ptr<const SampleSource> source)
    : config_(checked(std::move(config))),
      source_(std::move(source)),
      geometry_{config_.batch_size, config_.grad_accumulation, config_.rank, config_.world_size,
                config_.first_sample},
      order_{source_->count(config_.sequence_length), config_.shuffle, config_.seed},
      half_bytes_(padded_bytes(config_)) {
  if (order_.samples < geometry_.samples_per_step()) {
    throw core::DataError("less than one batch: a step takes " +
                          std::to_string(geometry_.samples_per_step()) + " samples of " +
                          std::to_string(config_.sequence_length) + " tokens, the data has " +
                          std::to_string(order_.samples) + "; use a smaller batch or more data");
  }
  ring_ = std::make_shared<SlotRing>(slots_for(config_), 2 * half_bytes_, config_.allocator);
  try {
    for (int i = 0; i < config_.workers; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() noexcept {
  ring_->stop();
  for (std::thread& worker : workers_) worker.join();
}

Batch Loader::next() {
  const auto start = Clock::now();
  const std::uint64_t ticket = next_out_;
  if (config_.workers == 0 && ring_->may_fill(ticket))
    fill_and_publish(ticket, ring_->wait_free(ticket));
  std::byte* slot = ring_->wait_ready(ticket);
  ++next_out_;
  last_reader_cost_ns_ =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
  reader_cost_ns_ += last_reader_cost_ns_;
  return batch_of(ticket, slot);
}

void Loader::work(int worker) noexcept {
  core::name_this_thread("ss-loader-" + std::to_string(worker));
  std::exception_ptr error;
  try {
    if (config_.on_worker_start) config_.on_worker_start(worker);
  } catch (...) {
    error = std::current_exception();
  }
  while (true) {
    const std::uint64_t ticket = next_in_++;
    std::byte* slot = ring_->wait_free(ticket);
    if (slot == nullptr) return;
    if (error)
      return ring_->publish(ticket, error);  // surfaces in next(), which then goes no further
    fill_and_publish(ticket, slot);
  }
}

void Loader::fill_and_publish(std::uint64_t ticket, std::byte* slot) noexcept {
  try {
    fill(ticket, slot);
    ring_->publish(ticket);
  } catch (...) {
    ring_->publish(ticket, std::current_exception());
  }
}

void Loader::fill(std::uint64_t ticket, std::byte* slot) const {
  const bool fixed = config_.fix_batch == FixBatch::kOn;
  if (fixed && ticket >= ring_->slots()) return;  // the slot holds that batch already
  const ranges::ScopedRange range(load_range_);
  const std::uint64_t first = geometry_.first_index(fixed ? BatchPlace{} : place_of(ticket));
  std::vector<std::uint64_t> samples(config_.batch_size);
  for (std::uint64_t row = 0; row < config_.batch_size; ++row)
    samples[row] = order_.sample(first + row);
  source_->read_batch(samples, inputs_in(slot), targets_in(slot));
}

BatchPlace Loader::place_of(std::uint64_t ticket) const {
  return {config_.first_step + ticket / config_.grad_accumulation,
          ticket % config_.grad_accumulation};
}

std::span<std::int64_t> Loader::inputs_in(std::byte* slot) const {
  return {reinterpret_cast<std::int64_t*>(slot), config_.batch_size * config_.sequence_length};
}

std::span<std::int64_t> Loader::targets_in(std::byte* slot) const {
  return inputs_in(slot + half_bytes_);
}

Batch Loader::batch_of(std::uint64_t ticket, std::byte* slot) const {
  Batch batch;
  batch.ring_ = ring_;
  batch.ticket_ = ticket;
  batch.place_ = place_of(ticket);
  const bool fixed = config_.fix_batch == FixBatch::kOn;
  batch.epoch_ = order_.epoch(geometry_.first_index(fixed ? BatchPlace{} : batch.place_));
  batch.inputs_ = inputs_in(slot);
  batch.targets_ = targets_in(slot);
  return batch;
}

std::shared_ptr<const SampleSource> open_source(const std::filesystem::path& folder, Split split) {
  return std::make_shared<StreamSource>(
      std::make_shared<const TokenStream>(TokenStream::open(folder, split)));
}

}  // namespace sidestream::data

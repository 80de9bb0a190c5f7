// An NCCL that a test scripts: what initialisation, launches and asynchronous errors say. One rank:
// sums are the input itself. Work is queued on the fake driver's streams by name.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "comm/nccl/api.hpp"
#include "core/base/error.hpp"
#include "tests/comm/device/fake_driver.hpp"

namespace sidestream::comm::nccl {

class FakeNccl : public Api {
 public:
  using Status = Result::Status;

  explicit FakeNccl(std::shared_ptr<cuda::FakeDriver> driver) : driver_(std::move(driver)) {}

  // --- what a test sets
  int built = 22809;
  int runtime = 22809;
  int polls_until_connected = 0;  // async_error says kInProgress so often; -1: for ever
  std::string init_failure;
  int polls_until_launched = 0;
  std::string launch_failure;
  std::atomic<bool> holds_launch{false};  // as a driver does that hangs
  std::string group_failure;
  // Though the call says that it is done, as NCCL's does; -1: for ever.
  int polls_until_registered = 0;
  bool has_memory = true;
  bool has_windows = true;  // whether the devices can register memory with each other
  std::string window_failure;
  std::atomic<bool> holds_abort{false};  // as a graph does that has launches of the communicator
  void break_with(const std::string& text) {
    const std::lock_guard lock(mutex_);
    async_failure_ = text;
  }

  // --- what a test reads
  std::atomic<int> aborted{0}, abort_ended{0}, finalized{0}, destroyed{0}, groups{0}, in_group{0};
  std::atomic<bool> is_in_launch{false};
  std::atomic<int> windows{0};  // that are registered
  int gathers_in_windows = 0;
  int freed_in_windows = 0;  // memory that was still registered
  Tuning tuning;             // of the last init

  int built_version() const override { return built; }
  int runtime_version() override { return runtime; }
  UniqueId unique_id() override { return {.bytes = {'i', 'd'}}; }

  Result init(Comm* comm, const UniqueId& id, const InitOptions& options) override {
    tuning = options.tuning;
    if (std::memcmp(id.bytes.data(), "id", 2) != 0) return failed("wrong id");
    if (!init_failure.empty()) return failed(init_failure);
    *comm = this;
    polls_ = polls_until_connected;
    return progress();
  }
  Result async_error(Comm) override {
    const std::lock_guard lock(mutex_);
    if (!async_failure_.empty()) return failed(async_failure_);
    if (polls_ > 0) --polls_;
    return progress();
  }
  Result finalize(Comm) override {
    ++finalized;
    return {};
  }
  void destroy(Comm) noexcept override {
    forget_windows();
    ++destroyed;
  }
  void abort(Comm) noexcept override {
    if (late_window_ != nullptr) *late_window_ = nullptr;  // NCCL is at it until here
    late_window_ = nullptr;
    forget_windows();
    ++aborted;
    while (holds_abort) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++abort_ended;
  }

  Result group_start() override {
    ++groups;
    return {};
  }
  Result group_end() override { return group_failure.empty() ? progress() : failed(group_failure); }
  Result all_reduce(const Transfer& t, Comm, Stream stream) override {
    return launch("all_reduce", t, stream);
  }
  Result reduce_scatter(const Transfer& t, Comm, Stream stream) override {
    return launch("reduce_scatter", t, stream);
  }
  Result all_gather(const Transfer& t, Comm, Stream stream) override {
    if (is_in_window(t.from) && is_in_window(t.to)) ++gathers_in_windows;
    return launch("all_gather", t, stream);
  }
  Result broadcast(const Transfer& t, int, Comm, Stream stream) override {
    ++in_group;
    return launch("broadcast", t, stream);
  }

  void* allocate(std::size_t bytes) override {
    return has_memory ? driver_->allocate(bytes) : nullptr;
  }
  void free(void* memory) noexcept override {
    if (is_in_window(memory)) ++freed_in_windows;
    driver_->free(memory);
  }

  Result register_window(void* memory, std::size_t bytes, Window* window, Comm) override {
    const std::lock_guard lock(mutex_);
    if (!window_failure.empty()) return failed(window_failure);
    if (has_windows) {
      *window = memory;
      registered_[static_cast<const std::byte*>(memory)] = bytes;
      ++windows;
    }
    polls_ = polls_until_registered;
    if (polls_ < 0) late_window_ = window;
    return {};
  }
  Result deregister_window(Window window, Comm) override {
    const std::lock_guard lock(mutex_);
    registered_.erase(static_cast<const std::byte*>(window));
    --windows;
    return progress();
  }

 private:
  static Result failed(const std::string& text) {
    return {.status = Status::kFailed, .text = text};
  }
  void forget_windows() noexcept {
    const std::lock_guard lock(mutex_);
    registered_.clear();
  }
  bool is_in_window(const void* place) const {
    const std::lock_guard lock(mutex_);
    const auto* byte = static_cast<const std::byte*>(place);
    return std::any_of(registered_.begin(), registered_.end(), [&](const auto& window) {
      return byte >= window.first && byte < window.first + window.second;
    });
  }
  Result progress() const { return {.status = polls_ == 0 ? Status::kDone : Status::kInProgress}; }
  Result launch(const std::string& name, const Transfer& transfer, Stream stream) {
    is_in_launch = true;
    while (holds_launch) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_in_launch = false;
    const std::lock_guard lock(mutex_);
    if (!launch_failure.empty()) return failed(launch_failure);
    if (polls_ != 0 && in_group == 0) return failed("communicator used before it is ready");
    driver_->enqueue(name, stream);
    const std::size_t bytes = transfer.count * core::size_of(transfer.dtype);
    if (transfer.from != transfer.to) std::memmove(transfer.to, transfer.from, bytes);
    polls_ = polls_until_launched;
    return progress();
  }

  std::shared_ptr<cuda::FakeDriver> driver_;
  mutable std::mutex mutex_;
  std::string async_failure_;
  std::map<const std::byte*, std::size_t> registered_;  // bytes, by where it begins
  int polls_ = 0;
  Window* late_window_ = nullptr;
};

}  // namespace sidestream::comm::nccl

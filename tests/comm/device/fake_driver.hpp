// A CUDA without a device: copies are done at once, and what matters is remembered: which work is
// ordered after which, how often the host blocked, what was freed. Faults can be switched on.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/cuda/driver.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::cuda {

class FakeDriver : public Driver {
 public:
  // --- what a test sets
  int devices = 1;
  bool has_driver = true;
  bool none_visible = false;
  std::string why_none = "no NVIDIA driver is loaded on this machine";
  std::vector<std::string> names = {"Fake 100"};  // of device i modulo their number
  bool same_uuid = false;                         // every device is the same one
  DeviceMemory free_memory{.free_bytes = std::size_t{80} << 30,
                           .total_bytes = std::size_t{80} << 30};
  std::string set_device_failure;
  bool memory_is_full = false;

  // --- what a test reads
  int synchronizations = 0, device_finishes = 0;
  int last_finished = -1;  // device
  int profiler_starts = 0, profiler_stops = 0;
  std::size_t streams_alive = 0, events_alive = 0, blocks_alive = 0, pinned_alive = 0;
  std::map<void*, std::size_t> pinned_places;  // of other owners
  std::vector<Priority> priorities;
  int current = -1;

  // Queued work by name: a test's kernel, or what the driver itself was asked for.
  void enqueue(const std::string& name, Stream stream) {
    const std::lock_guard lock(mutex_);
    add(name, stream);
  }
  // Whether every work called `later` comes after every one called `earlier` that was queued before
  // it.
  bool is_after(const std::string& later, const std::string& earlier) const {
    const std::lock_guard lock(mutex_);
    bool found = false;
    for (std::size_t i = 0; i < works_.size(); ++i) {
      if (works_[i].name != later) continue;
      for (std::size_t j = 0; j < i; ++j) {
        if (works_[j].name != earlier) continue;
        found = true;
        if (!works_[i].after.contains(j)) return false;
      }
    }
    return found;
  }
  std::size_t count_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Work& work : works_) count += work.name == name ? 1 : 0;
    return count;
  }
  Stream stream_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    for (const Work& work : works_) {
      if (work.name == name) return work.stream;
    }
    return nullptr;
  }
  // Work queued from now on is never done, until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    pending_.clear();
  }

  // Work of the stream, and of streams that follow its events, belongs to a graph from here on:
  // whoever asks for an event in it has done what CUDA forbids.
  void start_capture(Stream stream) {
    const std::lock_guard lock(mutex_);
    origin_ = stream;
    capturing_ = {stream};
  }
  // Throws as CUDA does where a stream was forked and not joined.
  void finish_capture() {
    const std::lock_guard lock(mutex_);
    const auto& joined = queued_[origin_];
    for (const Stream stream : std::exchange(capturing_, {})) {
      for (const std::size_t work : queued_[stream]) {
        if (!joined.contains(work)) throw core::Error("the capture has unjoined work");
      }
    }
  }

  // Every query of an event throws this from now on, whoever asks: the watchdog's thread does, too.
  void break_with(const std::string& fault) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
  }

  // --- Driver
  DeviceCount device_count() override {
    return {.count = devices,
            .problem = devices == 0 ? why_none : "",
            .expected = has_driver,
            .none_visible = none_visible};
  }
  void set_device(int index) override {
    if (!set_device_failure.empty()) throw core::Error(set_device_failure);
    current = index;
  }
  DeviceProperties properties(int index) override {
    return {.name = names[static_cast<std::size_t>(index) % names.size()],
            .uuid = "GPU-" + std::to_string(same_uuid ? 0 : index),
            .pci_bus = "0000:0" + std::to_string(index) + ":00.0",
            .version = "driver for CUDA 13.0, runtime 13.0"};
  }
  DeviceMemory memory() override { return free_memory; }

  Stream create_stream(Priority priority) override {
    const std::lock_guard lock(mutex_);
    priorities.push_back(priority);
    ++streams_alive;
    return handle(++last_handle_);
  }
  void destroy_stream(Stream) noexcept override {
    const std::lock_guard lock(mutex_);
    --streams_alive;
  }
  Event create_event() override {
    const std::lock_guard lock(mutex_);
    ++events_alive;
    return handle(++last_handle_);
  }
  void destroy_event(Event) noexcept override {
    const std::lock_guard lock(mutex_);
    --events_alive;
  }
  void record(Event event, Stream stream) override {
    const std::lock_guard lock(mutex_);
    refuse_null(stream);
    recorded_[event] = queued_[stream];
    if (capturing_.contains(stream)) {
      captured_.insert(event);
    } else {
      captured_.erase(event);
    }
    if (held_) pending_.insert(event);
  }
  void wait(Stream stream, Event event) override {
    const std::lock_guard lock(mutex_);
    refuse_null(stream);
    if (captured_.contains(event)) {
      if (capturing_.empty())
        throw core::Error("an event of a capture is waited for outside of it");
      capturing_.insert(stream);
    }
    queued_[stream].insert(recorded_[event].begin(), recorded_[event].end());
  }
  bool done(Event event) override {
    const std::lock_guard lock(mutex_);
    if (!fault_.empty()) throw core::Error(fault_);
    if (captured_.contains(event)) throw core::Error("an event of a capture was asked for");
    return !pending_.contains(event);
  }

  void* allocate(std::size_t bytes) override {
    if (memory_is_full) throw core::MemoryError("GPU memory: 5 MiB wanted, 1 of 2 MiB are free");
    ++blocks_alive;
    return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  }
  void free(void* memory) noexcept override {
    --blocks_alive;
    std::free(memory);
  }
  void* allocate_pinned(std::size_t bytes) override {
    ++pinned_alive;
    return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  }
  void free_pinned(void* memory) noexcept override {
    --pinned_alive;
    std::free(memory);
  }
  bool pin(void* memory, std::size_t bytes) override {
    pinned_places.insert({memory, bytes});
    return true;
  }
  void unpin(void* memory) noexcept override { pinned_places.erase(memory); }
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    const std::lock_guard lock(mutex_);
    add("copy", stream);
    std::memmove(to, from, bytes);
  }
  void set_zero(void* memory, std::size_t bytes, Stream stream) override {
    const std::lock_guard lock(mutex_);
    add("set_zero", stream);
    std::memset(memory, 0, bytes);
  }
  void start_profiler() override { ++profiler_starts; }
  void stop_profiler() override { ++profiler_stops; }
  void synchronize(Stream stream) override {
    const std::lock_guard lock(mutex_);
    refuse_null(stream);
    ++synchronizations;
  }
  void finish_device(int index) noexcept override {
    ++device_finishes;
    last_finished = index;
  }

 private:
  struct Work {
    std::string name;
    Stream stream;
    std::set<std::size_t> after;
  };

  static void* handle(std::uintptr_t number) { return reinterpret_cast<void*>(number << 8); }
  static void refuse_null(Stream stream) {
    if (stream == nullptr) throw core::Error("a stream is null: device_stream() names the default");
  }
  void add(const std::string& name, Stream stream) {
    refuse_null(stream);
    works_.push_back({.name = name, .stream = stream, .after = queued_[stream]});
    queued_[stream].insert(works_.size() - 1);
  }

  mutable std::mutex mutex_;
  std::uintptr_t last_handle_ = 0;
  std::vector<Work> works_;
  std::map<Stream, std::set<std::size_t>> queued_;  // what comes before the stream's next work
  std::map<Event, std::set<std::size_t>> recorded_;
  std::set<Event> pending_;
  Stream origin_ = nullptr;
  std::set<Stream> capturing_;
  std::set<Event> captured_;  // whose last record was captured
  bool held_ = false;
  std::string fault_;
};

}  // namespace sidestream::comm::cuda

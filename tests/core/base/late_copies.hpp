// An engine of copies for tests. The computation is the calling thread, which does its work at
// once; copies are done as late as the marks allow, or in a queue that a test makes eager, as
// early: who forgets to wait reads what was there before, and who uses memory again too early has
// it copied.
//
// Host memory that it hands out is full of NaN at first, and again when it is given back.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/copy_engine.hpp"
#include "core/base/error.hpp"

namespace sidestream::core {

class LateCopies final : public CopyEngine {
 public:
  // --- what a test sets
  std::set<Queue> eager = {};  // queues whose copies are done as soon as they may be
  // Whether this memory has an owner; asked when a copy is done.
  std::function<bool(const void* memory, std::size_t bytes)> may_touch =
      [](const void*, std::size_t) { return true; };
  int fails_after = -1;  // copies that succeed before one throws; -1: all

  // --- what a test reads
  std::size_t copies_to_device = 0, copies_to_host = 0;  // that were asked for
  std::size_t host_blocks_made = 0;
  int finishes = 0;
  std::string fault = {};  // the first copy that touched memory without an owner

  std::size_t host_bytes_alive() const { return *alive_; }
  // Copies, and what holds them back, that are not done.
  std::size_t waiting() const { return left(of(Queue::kToDevice)) + left(of(Queue::kToHost)); }

  // --- CopyEngine
  std::shared_ptr<std::byte> allocate_host(std::size_t bytes) override {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    std::memset(memory, kNan, bytes);
    *alive_ += bytes;
    ++host_blocks_made;
    return {memory, [bytes, alive = alive_, freed = freed_](std::byte* block) {
              std::memset(block, kNan, bytes);
              *alive -= bytes;
              freed->emplace_back(block, &std::free);  // nobody else gets it while the test runs
            }};
  }

  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
    if (queue == Queue::kCompute) throw Error("the computation copies nothing");
    if (fails_after == 0) throw Error("this copy was to fail");
    if (fails_after > 0) --fails_after;
    ++(queue == Queue::kToHost ? copies_to_host : copies_to_device);
    works_of(queue).works.push_back([this, to, from, bytes] { do_copy(to, from, bytes); });
    if (eager.contains(queue)) run(queue, of(queue).works.size());
  }

  Mark mark(Queue queue) override {
    const std::size_t position = queue == Queue::kCompute ? 0 : of(queue).works.size();
    return std::make_shared<const Position>(Position{queue, position});
  }

  void hold_back(Queue queue, const Mark& mark) override {
    if (!mark) throw Error("there is no such mark");
    const Position before = *std::static_pointer_cast<const Position>(mark);
    if (before.queue == Queue::kCompute || before.queue == queue) return;
    if (queue == Queue::kCompute) return run(before.queue, before.position);
    works_of(queue).works.push_back([this, before] { run(before.queue, before.position); });
  }

  void finish() override {
    ++finishes;
    run(Queue::kToDevice, of(Queue::kToDevice).works.size());
    run(Queue::kToHost, of(Queue::kToHost).works.size());
  }

 private:
  static constexpr int kNan = 0xFF;  // in every floating type

  struct Position {
    Queue queue;
    std::size_t position;
  };
  struct Works {
    std::vector<std::function<void()>> works;
    std::size_t done = 0;
  };

  static std::size_t left(const Works& works) { return works.works.size() - works.done; }
  const Works& of(Queue queue) const { return queues_[queue == Queue::kToHost ? 1 : 0]; }
  Works& works_of(Queue queue) { return queues_[queue == Queue::kToHost ? 1 : 0]; }

  void run(Queue queue, std::size_t end) {
    Works& works = works_of(queue);
    while (works.done < end) {
      const auto work = works.works[works.done];
      work();
      ++works.done;
    }
  }

  void do_copy(void* to, const void* from, std::size_t bytes) {
    for (const void* memory : {const_cast<const void*>(to), from}) {
      if (fault.empty() && !may_touch(memory, bytes)) fault = "memory that nobody owns any more";
    }
    std::memmove(to, from, bytes);
  }

  std::array<Works, 2> queues_;
  std::shared_ptr<std::size_t> alive_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<std::vector<std::unique_ptr<std::byte, void (*)(void*)>>> freed_ =
      std::make_shared<std::vector<std::unique_ptr<std::byte, void (*)(void*)>>>();
};

}  // namespace sidestream::core

// The host side of a rank whose peers are a script: what they say in an exchange, and when they
// fail.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/single_communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {

// What the test sees after the communicator is gone.
struct HostRecord {
  std::mutex mutex;
  std::vector<std::string> announced;
  bool gone = false;
  std::atomic<int> left{0};
  std::optional<PeerFailure> peer_failure;
  std::string missing;                                // what describe_missing says
  std::vector<std::string> asked;                     // "everyone", "again"
  bool may_speak = true;                              // of a deadline
  std::vector<std::uint64_t> started;                 // what this rank has noted
  std::optional<std::chrono::milliseconds> deadline;  // of the last exchange, where it had its own
};

class ScriptedProgress final : public PeerProgress {
 public:
  explicit ScriptedProgress(std::shared_ptr<HostRecord> record) : record_(std::move(record)) {}
  void note_started(std::uint64_t sequence) noexcept override {
    const std::lock_guard lock(record_->mutex);
    record_->started.push_back(sequence);
  }
  void ask_everyone() noexcept override { note_question("everyone"); }
  void ask_again() noexcept override { note_question("again"); }
  std::chrono::milliseconds time_to_answer() const noexcept override {
    return std::chrono::milliseconds(5);
  }
  bool may_speak(std::chrono::nanoseconds) noexcept override {
    const std::lock_guard lock(record_->mutex);
    return record_->may_speak;
  }
  std::string describe_missing(std::uint64_t) const override { return record_->missing; }

 private:
  void note_question(const char* question) {
    const std::lock_guard lock(record_->mutex);
    record_->asked.emplace_back(question);
  }

  std::shared_ptr<HostRecord> record_;
};

class ScriptedHost final : public Communicator {
 public:
  // reply(mine, rank): what that other rank says when this one says `mine`.
  using Reply = std::function<std::string(const std::string& mine, int rank)>;

  explicit ScriptedHost(
      int size, std::shared_ptr<HostRecord> record = std::make_shared<HostRecord>(),
      Reply reply = [](const std::string& mine, int) { return mine; })
      : record_(std::move(record)), progress_(record_), reply_(std::move(reply)) {
    topology_.size = size;
    topology_.local_size = size;
    topology_.hosts.assign(static_cast<std::size_t>(size), "node1");
  }
  ~ScriptedHost() override { record_->gone = true; }

  const Topology& topology() const noexcept override { return topology_; }
  std::string_view backend_name() const noexcept override { return "scripted"; }
  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override {
    return alone_.all_reduce(data, count, dtype, options);
  }
  Work reduce_scatter(const void* input, void* output, std::size_t count, core::DType dtype,
                      const CollectiveOptions& options) override {
    return alone_.reduce_scatter(input, output, count, dtype, options);
  }
  Work all_gather(const void* input, void* output, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override {
    return alone_.all_gather(input, output, count, dtype, options);
  }
  Work broadcast(void* data, std::size_t count, core::DType dtype, int,
                 const CollectiveOptions& options) override {
    return alone_.broadcast(data, count, dtype, 0, options);
  }
  void barrier(const CollectiveOptions&) override { refuse_after_announcement(); }
  void leave() override { ++record_->left; }  // does nothing after an announcement
  std::vector<std::string> exchange(std::string_view mine,
                                    const CollectiveOptions& options) override {
    refuse_after_announcement();
    {
      const std::lock_guard lock(record_->mutex);
      record_->deadline = options.deadline;
    }
    std::vector<std::string> all = {std::string(mine)};
    for (int rank = 1; rank < size(); ++rank) all.push_back(reply_(all[0], rank));
    return all;
  }
  Allocation allocate(std::size_t bytes) override { return alone_.allocate(bytes); }
  void announce_failure(std::string_view message) noexcept override {
    const std::lock_guard lock(record_->mutex);
    record_->announced.emplace_back(message);
  }
  std::optional<PeerFailure> failure_of_peer() const override {
    const std::lock_guard lock(record_->mutex);
    return record_->peer_failure;
  }

  PeerProgress* peer_progress() noexcept override { return &progress_; }

 private:
  // As the engine of real host ranks does: the peers will not come any more.
  void refuse_after_announcement() const {
    const std::lock_guard lock(record_->mutex);
    if (record_->announced.empty()) return;
    throw core::CollectiveError("rank 0 has told its peers that it failed: " +
                                record_->announced.front());
  }

  std::shared_ptr<HostRecord> record_;
  ScriptedProgress progress_;
  Reply reply_;
  Topology topology_;
  SingleCommunicator alone_;
};

}  // namespace sidestream::comm

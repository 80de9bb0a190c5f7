// Threads as ranks: a communicator inside one process, for tests of what is built on communicators.
//
// The rank that arrives last at an operation carries it out for all, in rank order. Ranks that call
// different operations get a CollectiveError that says so; after announce_failure() every wait
// throws PeerError. Nothing hangs.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace sidestream::test {

class ThreadGroup;  // what the ranks share
struct Call;        // what one rank brings to an operation

class ThreadCommunicator : public comm::Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank);
  ~ThreadCommunicator() override;

  const comm::Topology& topology() const noexcept override { return topology_; }
  std::string_view backend_name() const noexcept override { return "threads"; }

  comm::Work all_reduce(void* data, std::size_t count, core::DType dtype,
                        const comm::CollectiveOptions& options) override;
  comm::Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                            core::DType dtype, const comm::CollectiveOptions& options) override;
  comm::Work all_gather(const void* input, void* output, std::size_t count_per_rank,
                        core::DType dtype, const comm::CollectiveOptions& options) override;
  comm::Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                       const comm::CollectiveOptions& options) override;
  void barrier(const comm::CollectiveOptions& options = {}) override;
  std::vector<std::string> exchange(std::string_view mine,
                                    const comm::CollectiveOptions& options = {}) override;
  comm::Allocation allocate(std::size_t bytes) override;
  std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) override;
  void announce_failure(std::string_view message) noexcept override;

  // From now on this rank says that it is one of two nodes, and its works that they took so long:
  // with it, layouts that follow from measurements can be tried.
  void claim_to_take(std::chrono::nanoseconds time) {
    claimed_ = time;
    topology_.node_count = 2;
  }

  // From now on there is memory that all ranks share, as on a node of processes. On all ranks.
  void share_memory() { shares_memory_ = true; }

  // Bucket numbers of the all-reduces that this rank has started, -1 for others.
  const std::vector<int>& reduced_buckets() const noexcept { return reduced_buckets_; }

  // What all-gathers have brought to this rank so far, its own part included.
  std::size_t gathered_bytes() const noexcept { return gathered_bytes_; }

 private:
  comm::Work started(const std::string& kind, const void* input, void* output,
                     const std::function<void(std::vector<Call>&)>& action);

  std::shared_ptr<ThreadGroup> group_;
  comm::Topology topology_;
  std::size_t sequence_ = 0;
  std::vector<int> reduced_buckets_;
  std::size_t gathered_bytes_ = 0;
  std::optional<std::chrono::nanoseconds> claimed_ = {};
  bool shares_memory_ = false;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

// Runs `work` on as many threads, each a rank with its own communicator and LibTorch kept to one
// thread. Returns each rank's exception, null where there was none; a rank that throws announces
// its failure.
std::vector<std::exception_ptr> run_ranks_collecting(
    int ranks, const std::function<void(ThreadCommunicator&)>& work);

// Rethrows the exception of the lowest rank that had one.
void run_ranks(int ranks, const std::function<void(ThreadCommunicator&)>& work);

// what() of an exception; empty for null.
std::string message_of(const std::exception_ptr& error);

// The same of what `call` throws; empty: nothing of this kind.
template <typename Exception>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace sidestream::test

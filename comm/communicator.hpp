// The collectives of a group of ranks, on (pointer, count, element type) and raw streams; knows no
// tensor.
//
// Every rank of the group calls the same operations in the same order, from one thread at a
// time (gradients of a GPU are ready on a thread of autograd). Operations of one communicator run
// in that order. An operation reads and writes its buffers until its Work has been waited for.
// Every operation has a deadline: past it all ranks stop, and the error names the rank that is
// missing and the operation. Errors carry the library's text, the rank, the operation and its
// sequence number.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective_capture.hpp"
#include "comm/peer_failure.hpp"
#include "comm/peer_progress.hpp"
#include "comm/purpose.hpp"
#include "comm/topology.hpp"
#include "comm/work.hpp"
#include "core/base/dtype.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::comm {

struct CollectiveOptions {
  int bucket = -1;         // number of the gradient bucket, for ranges and errors; -1: not a bucket
  int model = -1;          // whose bucket, as number_model() has it; the same on all ranks
  Stream after = nullptr;  // device work queued on this stream so far comes before the operation
  std::optional<std::chrono::milliseconds> deadline = {};  // default: the communicator's
  std::string_view deadline_flag = {};  // the flag that sets that deadline, for its message; static
  Purpose purpose = {};  // of an exchange: "step votes"; the same on all ranks, as its order is
  // The caller waits for the operation next: no other thread is woken to drive it, which would take
  // longer than a small operation does. Every rank decides for itself.
  bool waits_at_once = false;
};

inline CollectiveOptions waited_for(CollectiveOptions options = {}) {
  options.waits_at_once = true;
  return options;
}

// Memory that the communicator owns, 4096-aligned, alive as long as the communicator. On one node
// the host backend places it in a window that all ranks of the node map, so that a reduction needs
// no copies.
struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// A buffer and what is in it.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  core::DType dtype = core::DType::kFloat32;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual const Topology& topology() const noexcept = 0;
  int rank() const noexcept { return topology().rank; }
  int size() const noexcept { return topology().size; }

  // "single", "mpi", "mpi+shared-memory", "nccl", "nccl+windows": for logs.
  virtual std::string_view backend_name() const noexcept = 0;

  // Index of the GPU on which allocate() places memory and collectives find their buffers; nothing
  // for host ranks.
  virtual std::optional<int> device() const noexcept { return std::nullopt; }

  // CPU time that the backend's own threads have used so far.
  virtual std::int64_t progress_cpu_ns() const noexcept { return 0; }

  // 0, 1, ...: for each model whose gradients this communicator sums, so that buckets of two are
  // told apart (CollectiveOptions::model). Every rank calls it for the same models in the same
  // order; does not communicate.
  int number_model() noexcept { return models_++; }

  // Device memory that has gone since this rank took its GPU, in bytes: this process's own, unless
  // others use the GPU too. 0 on host ranks.
  virtual std::int64_t device_memory_taken() const { return 0; }

  // Of all collectives below that return a Work: every rank calls them, in the same order, with the
  // same count, dtype and root, and with buffers in memory of allocate() on all ranks or on none:
  // how a sum is cut between nodes goes by that. They start after what `options.after` has queued
  // so far and do not block the host, except where --backend mpi carries device buffers through it.
  // Buffers belong to the operation until Work::wait or wait_on. Throw Error for a dtype or root
  // that is none, and the failure of an earlier operation; their own failure comes with Work::wait
  // (CollectiveError past the deadline or when a library fails, PeerError when a rank has stopped).

  // Sum over ranks, in place, left on every rank. Host ranks sum 16-bit floats in fp32, on one node
  // always in rank order; NCCL chooses its own order. float32, bfloat16, float16, int64.
  virtual Work all_reduce(void* data, std::size_t count, core::DType dtype,
                          const CollectiveOptions& options = {}) = 0;

  // input: size() x count_per_rank elements; output: the sum of this rank's slice. output may be
  // the slice itself. Types as all_reduce.
  virtual Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                              core::DType dtype, const CollectiveOptions& options = {}) = 0;

  // input: count_per_rank elements; output: size() x count_per_rank in rank order. input may be the
  // slice itself. Any dtype.
  virtual Work all_gather(const void* input, void* output, std::size_t count_per_rank,
                          core::DType dtype, const CollectiveOptions& options = {}) = 0;

  // data of rank root to all ranks. Any dtype.
  virtual Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                         const CollectiveOptions& options = {}) = 0;

  // broadcast of each buffer, in one launch where the backend can. Blocks a host rank.
  virtual Work broadcast_each(std::span<const Buffer> buffers, int root,
                              const CollectiveOptions& options = {}) {
    for (const Buffer& buffer : buffers) {
      broadcast(buffer.data, buffer.count, buffer.dtype, root, waited_for(options)).wait();
    }
    return {};
  }

  // Every rank calls it; blocks the host until all have, orders no stream. Throws CollectiveError,
  // PeerError.
  virtual void barrier(const CollectiveOptions& options = {}) = 0;

  // The last call of a rank, which every rank makes; does nothing after a failure that was told.
  // Throws what barrier() throws, so that a rank that ends while others go on is noticed by both.
  // Who does not call it leaves with a warning instead, in the destructor.
  virtual void leave() {}

  // Small host payloads (kilobytes, any length per rank) of all ranks in rank order. Every rank
  // calls it, for the same `options.purpose`; blocks the host, orders no stream. Throws
  // CollectiveError, PeerError. For metrics and the like, which are values of a fixed size, there
  // is exchange_values() (exchange_values.hpp).
  virtual std::vector<std::string> exchange(std::string_view mine,
                                            const CollectiveOptions& options = {}) = 0;

  // Every rank calls it with the same size; blocks the host. Zero-filled. Throws MemoryError on all
  // ranks when one has no memory, CollectiveError, PeerError.
  virtual Allocation allocate(std::size_t bytes) = 0;

  // The same, but for as long as somebody has one of the pointers, where memory that the backend
  // knows makes collectives faster. What all ranks have let go of ends with their next call of this
  // or of allocate(), or with the communicator. Null on all ranks elsewhere: any memory does there.
  // All ranks call it with the same size; blocks. Throws as allocate().
  virtual std::shared_ptr<std::byte> allocate_registered(std::size_t bytes) {
    static_cast<void>(bytes);
    return nullptr;
  }

  // One copy for all ranks, zero-filled, 4096-aligned: what one rank writes, the others read, with
  // a barrier() between them. Lives as long as one of the pointers. Null on all ranks where they do
  // not share a node or its shared memory has no room. All ranks call it with the same size;
  // blocks. Throws CollectiveError, PeerError.
  virtual std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) {
    static_cast<void>(bytes);
    return nullptr;
  }

  // Tells the peers that this rank is about to stop because of `message`: whatever they wait for
  // throws PeerError with it, and what this rank has in flight CollectiveError. Callable from any
  // thread, never throws; takes up to 0.7 s where peers of other nodes are told by messages.
  virtual void announce_failure(std::string_view message) noexcept = 0;

  // What a peer has announced, or that it is gone, as far as it can be seen without a collective.
  // Callable from any thread, does not block.
  virtual std::optional<PeerFailure> failure_of_peer() const { return std::nullopt; }

  // What this rank is busy with, for the messages of others when it is late. Callable from one
  // thread at a time, costs nothing worth mentioning.
  virtual void note_activity(ranges::Phase phase, std::int64_t step) noexcept {
    static_cast<void>(phase);
    static_cast<void>(step);
  }

  // Whether a collective of this rank is in flight: then its deadline counts, and no other.
  virtual bool is_in_flight() const noexcept { return false; }

  // True for the rank that tells people about a failure that several ranks of a node see at once:
  // the first that asks.
  virtual bool claim_message() noexcept { return true; }

  // For steps that are captured and replayed; null where collectives cannot be: on host ranks, and
  // where they travel through the host.
  virtual CollectiveCapture* collective_capture() noexcept { return nullptr; }
  virtual bool captures_collectives() const noexcept { return false; }

  // For the communicator of a device that owns this one; null where there are no peers.
  virtual PeerProgress* peer_progress() noexcept { return nullptr; }

 protected:
  Communicator() = default;

 private:
  int models_ = 0;
};

}  // namespace sidestream::comm

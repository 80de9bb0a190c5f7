// The communicator of host ranks: shared windows within a node, MPI between nodes, one progress
// engine.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/control_channel.hpp"
#include "comm/device_progress.hpp"
#include "comm/factory.hpp"
#include "comm/life_lines.hpp"
#include "comm/mpi_collectives.hpp"
#include "comm/node_board.hpp"
#include "comm/node_collectives.hpp"
#include "comm/page_block.hpp"
#include "comm/peer_watch.hpp"
#include "comm/progress_engine.hpp"
#include "comm/shared_window.hpp"

namespace sidestream::comm {

class HostCommunicator final : public Communicator {
 public:
  // Collective over the ranks of MPI_COMM_WORLD. failed: set when an operation fails, so that MPI
  // is not finalised.
  HostCommunicator(const CommunicatorConfig& config, std::shared_ptr<std::atomic<bool>> failed,
                   std::vector<std::string>& warnings);

  // Waits for the peers, within the deadline of a collective, unless something failed or an
  // exception passes.
  ~HostCommunicator() override;

  const Topology& topology() const noexcept override { return topology_; }
  std::string_view backend_name() const noexcept override {
    return node_ ? "mpi+shared-memory" : "mpi";
  }
  std::int64_t progress_cpu_ns() const noexcept override { return engine_->progress_cpu_ns(); }

  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                      core::DType dtype, const CollectiveOptions& options) override;
  Work all_gather(const void* input, void* output, std::size_t count_per_rank, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                 const CollectiveOptions& options) override;
  void barrier(const CollectiveOptions& options) override;
  void leave() override;
  std::vector<std::string> exchange(std::string_view mine,
                                    const CollectiveOptions& options) override;
  Allocation allocate(std::size_t bytes) override;
  std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) override;
  void announce_failure(std::string_view message) noexcept override;
  std::optional<PeerFailure> failure_of_peer() const override;
  void note_activity(ranges::Phase phase, std::int64_t step) noexcept override {
    if (board_) board_->note_activity(phase, step);
  }
  bool is_in_flight() const noexcept override { return !engine_->is_idle(); }
  bool claim_message() noexcept override { return !board_ || board_->claim_message(); }
  PeerProgress* peer_progress() noexcept override { return device_progress_.get(); }

 private:
  void set_up_node(std::vector<std::string>& warnings);
  bool every_rank(bool mine);
  CollectiveOptions of_setup(const Purpose& purpose) const;
  NodeMeeting meeting_here();
  bool fits_in_windows(std::string_view call, std::size_t bytes, std::size_t bytes_per_rank);
  Allocation allocate_privately(std::size_t bytes);
  Call next_call(CallKind kind, std::size_t count, core::DType dtype, std::size_t bytes,
                 const CollectiveOptions& options);
  std::shared_ptr<Operation> start(const Call& call, Steps steps, const CollectiveOptions& options);
  Work started(const Call& call, Steps steps, const CollectiveOptions& options);
  Steps checked(Call call, Steps steps);
  Steps compared(Call call, Steps steps);
  bool close() noexcept;

  CommunicatorConfig config_;
  std::shared_ptr<std::atomic<bool>> failed_;
  int uncaught_at_start_;
  UniqueMpiComm job_;
  Topology topology_;
  NodeLayout layout_;
  UniqueMpiComm node_comm_;
  UniqueMpiComm lane_comm_;
  std::unique_ptr<MpiCollectives> mpi_;
  std::unique_ptr<MpiCollectives> lane_;
  std::unique_ptr<NodeBoard> board_;  // the four below: only where windows are used
  std::unique_ptr<WindowTable> windows_;
  std::unique_ptr<NodeCollectives> node_;
  std::unique_ptr<ControlChannel> channel_;  // null when the board reaches everybody
  std::unique_ptr<LifeLines> lines_;         // null likewise
  std::vector<PageBlock> private_blocks_;
  bool warned_about_space_ = false;
  std::atomic<bool> announced_{false};  // this rank has said that it stops
  bool has_left_ = false;               // after the others did so, too
  std::unique_ptr<PeerWatch> watch_;
  std::unique_ptr<DeviceProgress> device_progress_;
  std::unique_ptr<ProgressEngine> engine_;
  std::uint64_t sequence_ = 0;
};

}  // namespace sidestream::comm

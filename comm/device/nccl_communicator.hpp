// NCCL on a high-priority stream of its own. No call blocks the host until something on the device
// is done, except those that say so; see the folder's README for order and failures.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "comm/call.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/device/device_communicator.hpp"
#include "comm/failure_hook.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/nccl/api.hpp"
#include "comm/nccl/link.hpp"
#include "comm/nccl/watchdog.hpp"
#include "comm/nccl/windows.hpp"

namespace sidestream::comm {

struct NcclConfig {
  std::chrono::milliseconds timeout_setup{std::chrono::minutes(5)};
  std::chrono::milliseconds timeout_collective{std::chrono::minutes(3)};
  std::string_view setup_flag = {};  // that sets it, for messages; static; of the other one:
  std::string_view collective_flag = {};
  std::chrono::milliseconds watch_interval{20};
  std::shared_ptr<std::atomic<bool>> failed = {};  // set when an operation fails; may be null
  std::shared_ptr<FailureHook> failure_hook = {};  // may be null
  std::shared_ptr<FlightRecorder> flights = std::make_shared<FlightRecorder>();
  bool check_collectives = false;
  nccl::Tuning tuning = {};
};

class NcclCommunicator final : public DeviceCommunicator, private CollectiveCapture {
 public:
  // Collective over the ranks of `host`. When the GPUs cannot be connected, all ranks throw
  // AgreedError (exit code of a collective) with the first rank's cause.
  NcclCommunicator(std::unique_ptr<Communicator> host, DeviceContext context,
                   std::shared_ptr<nccl::Api> api, const NcclConfig& config);
  ~NcclCommunicator() override;

  // "nccl+windows" where NCCL could register memory of allocate().
  std::string_view backend_name() const noexcept override {
    return windows_->empty() ? "nccl" : "nccl+windows";
  }
  bool is_in_flight() const noexcept override {
    return !watchdog_->idle() || host().is_in_flight();
  }

  // Those of the host, but that a failure of NCCL is thrown as what it is: the host knows it only
  // as something that this rank has told its peers.
  void barrier(const CollectiveOptions& options) override;
  // Waits for what the device still has to do with the peers, and throws what becomes of it.
  void leave() override;
  std::vector<std::string> exchange(std::string_view mine,
                                    const CollectiveOptions& options) override;

  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                      core::DType dtype, const CollectiveOptions& options) override;
  Work all_gather(const void* input, void* output, std::size_t count_per_rank, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                 const CollectiveOptions& options) override;
  Work broadcast_each(std::span<const Buffer> buffers, int root,
                      const CollectiveOptions& options) override;
  // Null without windows, and where one rank is alone.
  std::shared_ptr<std::byte> allocate_registered(std::size_t bytes) override {
    return registers() ? lend_block(bytes) : nullptr;
  }
  void announce_failure(std::string_view message) noexcept override;
  CollectiveCapture* collective_capture() noexcept override { return this; }
  bool captures_collectives() const noexcept override { return true; }

 private:
  // Of the capture under way or of the last one. Its calls have numbers only when they run.
  struct Captured {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
  };
  void begin_capture() noexcept override;
  void end_capture() noexcept override;
  void dropped() noexcept override { link_->note_graph(false); }
  void replayed(Stream stream) override;

  template <typename HostCall>
  auto on_host(const HostCall& call) const;

  using Launch = std::function<nccl::Result(nccl::Api&, nccl::Comm)>;

  bool registers() const noexcept { return config_.tuning.windows && size() > 1; }
  std::shared_ptr<void> allocate_block(std::size_t bytes) override;
  void block_allocated(void* memory, std::size_t bytes) override;
  void block_ends(void* memory) override;
  void throw_failure_of_peer(const std::string& call) const;
  Call next_call(CallKind kind, std::size_t count, core::DType dtype, std::size_t bytes,
                 const CollectiveOptions& options);
  Work launch(const Call& call, const CollectiveOptions& options, const Launch& launch);
  Work launch_captured(const Call& call, const CollectiveOptions& options, const Launch& launch);
  void start_on_device(const Call& call, const Launch& launch);
  void require_rank(int root) const;
  void compare(const Call& call);
  void connect();
  std::string first_problem_of_all(const std::string& mine);
  void watch();
  bool ends_well() const noexcept;
  void on_failure(const std::string& message);

  NcclConfig config_;
  std::shared_ptr<nccl::Api> api_;
  cuda::OwnedStream stream_;
  std::shared_ptr<cuda::EventPool> events_;
  std::unique_ptr<nccl::Link> link_;
  std::unique_ptr<nccl::Watchdog> watchdog_;
  std::unique_ptr<nccl::Windows> windows_;
  std::uint64_t sequence_ = 0;
  std::atomic<bool> announced_{false};  // the caller has told the peers that this rank stops
  bool captures_ = false;
  Captured captured_;
};

}  // namespace sidestream::comm

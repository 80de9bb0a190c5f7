#include "comm/device/nccl_communicator.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "comm/reduce.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

class NcclWork final : public WorkState {
 public:
  NcclWork(std::shared_ptr<cuda::OwnedEvent> end, nccl::Watchdog& watchdog)
      : end_(std::move(end)), watchdog_(watchdog) {}

  void wait() override { watchdog_.wait(*end_); }
  void wait_on(Stream stream) override {
    watchdog_.rethrow_failure();
    end_->hold_back(stream);
  }
  bool done() const noexcept override {
    try {
      return watchdog_.failed() || end_->done();
    } catch (const std::exception&) {
      return true;
    }
  }

 private:
  std::shared_ptr<cuda::OwnedEvent> end_;
  nccl::Watchdog& watchdog_;
};

nccl::UniqueId common_id(Communicator& host, nccl::Api& api) {
  std::string mine;
  if (host.rank() == 0) {
    const nccl::UniqueId made = api.unique_id();
    mine.assign(made.bytes.begin(), made.bytes.end());
  }
  const std::string first = host.exchange(mine, {}).at(0);
  nccl::UniqueId id;
  if (first.size() != id.bytes.size()) {
    throw core::CollectiveError("NCCL: rank 0 sent an id of " + std::to_string(first.size()) +
                                " bytes, expected " + std::to_string(id.bytes.size()));
  }
  std::copy(first.begin(), first.end(), id.bytes.begin());
  return id;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, DeviceContext context,
                                   std::shared_ptr<nccl::Api> api, const NcclConfig& config)
    : DeviceCommunicator(std::move(host), std::move(context)),
      config_(config),
      api_(std::move(api)),
      stream_(this->context().driver, cuda::Priority::kHigh),
      events_(std::make_shared<cuda::EventPool>(this->context().driver)) {
  const nccl::UniqueId id = common_id(this->host(), *api_);
  link_ = std::make_unique<nccl::Link>(api_, id, nccl::InitOptions{.rank = rank(), .size = size()},
                                       config_.timeout_setup);
  watchdog_ = std::make_unique<nccl::Watchdog>(
      rank(),
      nccl::WatchdogHooks{
          .async_error = [this] { return link_->async_error(); },
          .peer_failure = [this] { return this->host().failure_of_peer(); },
          .on_start = [this] { driver().set_device(this->context().index); },
          .on_failure = [this](const std::string& message) { on_failure(message); }},
      config_.watch_interval);
}

NcclCommunicator::~NcclCommunicator() {
  const bool orderly = !watchdog_->failed() && std::uncaught_exceptions() == 0;
  watchdog_.reset();
  if (!orderly) link_->abort();
}

void NcclCommunicator::on_failure(const std::string& message) {
  host().announce_failure(message);
  if (config_.failed) config_.failed->store(true);
  if (config_.failure_hook) config_.failure_hook->run();
  link_->abort();
}

void NcclCommunicator::announce_failure(std::string_view message) noexcept {
  host().announce_failure(message);
  link_->abort();  // what waits for this rank on the device would wait for ever
}

std::shared_ptr<void> NcclCommunicator::allocate_block(std::size_t bytes) {
  void* memory = api_->allocate(bytes);
  if (memory == nullptr) return DeviceCommunicator::allocate_block(bytes);  // throws with numbers
  return {memory, [api = api_](void* block) { api->free(block); }};
}

Call NcclCommunicator::next_call(CallKind kind, std::size_t count, core::DType dtype,
                                 std::size_t bytes, const CollectiveOptions& options) {
  watchdog_->rethrow_failure();
  return {.kind = kind,
          .dtype = dtype,
          .count = count,
          .sequence = ++sequence_,
          .bytes = bytes,
          .bucket = options.bucket};
}

Work NcclCommunicator::launch(const Call& call, const CollectiveOptions& options,
                              const Launch& launch) {
  if (options.after != nullptr) {
    cuda::order(*cuda::EventPool::take(events_), options.after, stream_.get());
  }
  auto operation = std::make_shared<nccl::DeviceOperation>(
      nccl::DeviceOperation{.call = call,
                            .end = cuda::EventPool::take(events_),
                            .limit = options.deadline.value_or(config_.timeout_collective)});
  operation->range =
      ranges::AsyncRange(call.phase(), {.bucket = call.bucket,
                                        .sequence = static_cast<std::int64_t>(call.sequence),
                                        .bytes = static_cast<std::int64_t>(call.bytes)});
  try {
    link_->launch(launch);
  } catch (const core::CollectiveError& error) {
    watchdog_->fail(call, error.what());
  }
  operation->end->record(stream_.get());
  watchdog_->add(operation);
  return Work(std::make_shared<NcclWork>(operation->end, *watchdog_));
}

void NcclCommunicator::require_rank(int root) const {
  if (root >= 0 && root < size()) return;
  throw core::Error("broadcast from rank " + std::to_string(root) + ": there are ranks 0 to " +
                    std::to_string(size() - 1));
}

Work NcclCommunicator::all_reduce(void* data, std::size_t count, core::DType dtype,
                                  const CollectiveOptions& options) {
  require_summable(dtype);
  const nccl::Transfer transfer{.from = data, .to = data, .count = count, .dtype = dtype};
  const Call call =
      next_call(CallKind::kAllReduce, count, dtype, count * core::size_of(dtype), options);
  return launch(call, options, [&](nccl::Api& api, nccl::Comm comm) {
    return api.all_reduce(transfer, comm, stream_.get());
  });
}

Work NcclCommunicator::reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                                      core::DType dtype, const CollectiveOptions& options) {
  require_summable(dtype);
  const nccl::Transfer transfer{
      .from = input, .to = output, .count = count_per_rank, .dtype = dtype};
  const std::size_t bytes =
      count_per_rank * core::size_of(dtype) * static_cast<std::size_t>(size());
  const Call call = next_call(CallKind::kReduceScatter, count_per_rank, dtype, bytes, options);
  return launch(call, options, [&](nccl::Api& api, nccl::Comm comm) {
    return api.reduce_scatter(transfer, comm, stream_.get());
  });
}

Work NcclCommunicator::all_gather(const void* input, void* output, std::size_t count_per_rank,
                                  core::DType dtype, const CollectiveOptions& options) {
  const nccl::Transfer transfer{
      .from = input, .to = output, .count = count_per_rank, .dtype = dtype};
  const Call call = next_call(CallKind::kAllGather, count_per_rank, dtype,
                              count_per_rank * core::size_of(dtype), options);
  return launch(call, options, [&](nccl::Api& api, nccl::Comm comm) {
    return api.all_gather(transfer, comm, stream_.get());
  });
}

Work NcclCommunicator::broadcast(void* data, std::size_t count, core::DType dtype, int root,
                                 const CollectiveOptions& options) {
  const Buffer buffer{.data = data, .count = count, .dtype = dtype};
  return broadcast_each({&buffer, 1}, root, options);
}

// One group, one launch.
Work NcclCommunicator::broadcast_each(std::span<const Buffer> buffers, int root,
                                      const CollectiveOptions& options) {
  require_rank(root);
  if (buffers.empty()) return {};
  std::size_t bytes = 0;
  for (const Buffer& buffer : buffers) bytes += buffer.count * core::size_of(buffer.dtype);
  Call call = next_call(CallKind::kBroadcast, buffers[0].count, buffers[0].dtype, bytes, options);
  call.root = root;
  return launch(call, options, [&](nccl::Api& api, nccl::Comm comm) {
    nccl::Result result = api.group_start();
    for (const Buffer& buffer : buffers) {
      if (result.status == nccl::Result::Status::kFailed) break;
      result = api.broadcast(
          {.from = buffer.data, .to = buffer.data, .count = buffer.count, .dtype = buffer.dtype},
          root, comm, stream_.get());
    }
    const nccl::Result end = api.group_end();
    return result.status == nccl::Result::Status::kFailed ? result : end;
  });
}

}  // namespace sidestream::comm

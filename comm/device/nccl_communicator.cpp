#include "comm/device/nccl_communicator.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "comm/call_check.hpp"
#include "comm/device/nccl_work.hpp"
#include "comm/more_time.hpp"
#include "comm/reduce.hpp"
#include "core/base/error.hpp"
#include "core/base/warning.hpp"

namespace sidestream::comm {
namespace {

constexpr std::chrono::milliseconds kPatienceAfterFailure{10'000};

// What a rank says of its connection: how far it explains the failure, then its words.
enum Weight : char { kCause = '1', kSymptom = '2', kNothing = '3' };

// The heaviest of all ranks' problems: one that only waited for its peers does not know the cause.
std::string first_problem(const std::vector<std::string>& by_rank, const Topology& topology) {
  const auto worst = std::min_element(by_rank.begin(), by_rank.end(),
                                      [](auto& a, auto& b) { return a.at(0) < b.at(0); });
  if (worst->at(0) == kNothing) return {};
  const auto rank = static_cast<std::size_t>(worst - by_rank.begin());
  return topology.place_of(rank) + ": " + worst->substr(1);
}

// Rank 0's id, or what kept it from having one.
struct SharedId {
  nccl::UniqueId id;
  std::string problem;
};

SharedId share_id(Communicator& host, nccl::Api& api) {
  std::string mine;
  if (host.rank() == 0) {
    try {
      const nccl::UniqueId made = api.unique_id();
      mine.assign(made.bytes.begin(), made.bytes.end());
    } catch (const core::Error& error) {
      mine = error.what();
    }
  }
  const std::string first = host.exchange(mine, {}).at(0);
  SharedId shared;
  if (first.size() == shared.id.bytes.size()) {
    std::copy(first.begin(), first.end(), shared.id.bytes.begin());
  } else {
    shared.problem = first;
  }
  return shared;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, DeviceContext context,
                                   std::shared_ptr<nccl::Api> api, const NcclConfig& config)
    : DeviceCommunicator(std::move(host), std::move(context)),
      config_(config),
      api_(std::move(api)),
      stream_(this->context().driver, cuda::Priority::kHigh),
      events_(std::make_shared<cuda::EventPool>(this->context().driver)) {
  connect();
  windows_ = std::make_unique<nccl::Windows>(*link_);
  watch();
}

void NcclCommunicator::connect() {
  const SharedId shared = share_id(host(), *api_);
  std::string problem = shared.problem.empty() ? "" : char(kCause) + shared.problem;
  if (problem.empty()) {
    try {
      // Less than the whole setup may take, so that this message comes before that of its deadline.
      link_ = std::make_unique<nccl::Link>(
          api_, shared.id,
          nccl::InitOptions{.rank = rank(), .size = size(), .tuning = config_.tuning},
          config_.timeout_setup * 3 / 4);
    } catch (const nccl::PeersLate& late) {
      problem = char(kSymptom) + std::string(late.what()) + more_time(config_.setup_flag);
    } catch (const core::CollectiveError& error) {
      problem = char(kCause) + std::string(error.what());
    }
  }
  const std::string first = first_problem_of_all(problem);
  if (first.empty()) return;
  if (link_) link_->abort();
  link_.reset();
  end_host();
  throw core::AgreedError(first, core::ExitCode::kCollective);
}

// Every rank says how it went, so that one message ends the job, not one a rank. A rank that failed
// does not wait long for peers that may hang because of it: it ends the job alone.
std::string NcclCommunicator::first_problem_of_all(const std::string& mine) {
  const auto patience =
      mine.empty() ? config_.timeout_setup : std::min(config_.timeout_setup, kPatienceAfterFailure);
  try {
    const std::string said = mine.empty() ? std::string(1, kNothing) : mine;
    return first_problem(host().exchange(said, {.deadline = patience,
                                                .deadline_flag = config_.setup_flag,
                                                .purpose = "NCCL failures"}),
                         topology());
  } catch (const core::Error&) {
    if (mine.empty()) throw;
    throw core::CollectiveError(mine.substr(1));
  }
}

void NcclCommunicator::watch() {
  watchdog_ = std::make_unique<nccl::Watchdog>(
      rank(),
      nccl::WatchdogHooks{.async_error = [this] { return link_->async_error(); },
                          .peer_failure = [this] { return this->host().failure_of_peer(); },
                          .peers = host().peer_progress(),
                          .on_start = [this] { driver().set_device(this->context().index); },
                          .on_failure = [this](const std::string& message) { on_failure(message); },
                          .abort = [this] { link_->abort(); },
                          .on_finished =
                              [this](const Call& call) {
                                config_.flights->note(FlightPlane::kDevice, call,
                                                      FlightState::kFinished);
                              }},
      config_.watch_interval);
}

bool NcclCommunicator::ends_well() const noexcept {
  if (watchdog_->failed() || announced_ || std::uncaught_exceptions() > 0) return false;
  try {
    watchdog_->finish();
    return true;
  } catch (const std::exception& error) {
    core::print_warning("this rank has left the program: " + std::string(error.what()));
    return false;
  }
}

// What the device has in flight uses the windows, which NCCL unmaps at once.
NcclCommunicator::~NcclCommunicator() {
  const bool orderly = ends_well();
  watchdog_.reset();
  orderly ? windows_->remove_all() : link_->abort();  // before their memory goes
}

void NcclCommunicator::on_failure(const std::string& message) {
  host().announce_failure(message);
  if (config_.failed) config_.failed->store(true);
  if (config_.failure_hook) config_.failure_hook->run();
}

template <typename HostCall>
auto NcclCommunicator::on_host(const HostCall& call) const {
  try {
    return call(host());
  } catch (const core::Error&) {
    watchdog_->rethrow_failure();
    throw;
  }
}

void NcclCommunicator::barrier(const CollectiveOptions& options) {
  on_host([&](Communicator& ranks) { ranks.barrier(options); });
}

void NcclCommunicator::leave() {
  if (!announced_) watchdog_->finish();
  on_host([](Communicator& ranks) { ranks.leave(); });
}

std::vector<std::string> NcclCommunicator::exchange(std::string_view mine,
                                                    const CollectiveOptions& options) {
  return on_host([&](Communicator& ranks) { return ranks.exchange(mine, options); });
}

void NcclCommunicator::announce_failure(std::string_view message) noexcept {
  announced_ = true;
  host().announce_failure(message);
  link_->abort();  // what waits for this rank on the device would wait for ever
}

std::shared_ptr<void> NcclCommunicator::allocate_block(std::size_t bytes) {
  void* memory = api_->allocate(bytes);
  if (memory == nullptr) return DeviceCommunicator::allocate_block(bytes);  // throws with numbers
  // Other than cudaFree, the end of such memory does not wait for kernels that are still to use it,
  // and it may come on a thread that has chosen no device.
  return {memory, [api = api_, driver = context().driver, index = context().index](void* block) {
            driver->finish_device(index);
            api->free(block);
          }};
}

void NcclCommunicator::block_allocated(void* memory, std::size_t bytes) {
  if (!registers()) return;
  const std::string call = "rank " + std::to_string(rank()) + ": NCCL cannot register " +
                           std::to_string(bytes) + " bytes with the peers: ";
  try {
    windows_->add(memory, bytes, [&] { throw_failure_of_peer(call); });
  } catch (const core::PeerError&) {
    link_->abort();  // NCCL may be at work on memory that ends here
    throw;
  } catch (const core::CollectiveError& error) {
    const std::string message = call + error.what() + ". --nccl-windows off does without";
    announce_failure(message);
    throw core::CollectiveError(message);
  }
}

// NCCL waits for all ranks: one that has stopped does not come.
void NcclCommunicator::throw_failure_of_peer(const std::string& call) const {
  const auto failure = host().failure_of_peer();
  if (!failure) return;
  std::rethrow_exception(error_of(*failure, call + "a peer has stopped: " + failure->text));
}

void NcclCommunicator::block_ends(void* memory) {
  driver().finish_device(context().index);
  windows_->remove(memory);
}

Call NcclCommunicator::next_call(CallKind kind, std::size_t count, core::DType dtype,
                                 std::size_t bytes, const CollectiveOptions& options) {
  watchdog_->rethrow_failure();
  return {.kind = kind,
          .dtype = dtype,
          .count = count,
          .sequence = ++sequence_,
          .bytes = bytes,
          .bucket = options.bucket,
          .model = options.model,
          .purpose = options.purpose};
}

Work NcclCommunicator::launch(const Call& call, const CollectiveOptions& options,
                              const Launch& launch) {
  if (captures_) return launch_captured(call, options, launch);
  config_.flights->note(FlightPlane::kDevice, call, FlightState::kQueued);
  if (config_.check_collectives) compare(call);
  if (options.after != nullptr) {
    cuda::order(*cuda::EventPool::take(events_), options.after, stream_.get());
  }
  auto operation = std::make_shared<nccl::DeviceOperation>(nccl::DeviceOperation{
      .call = call,
      .end = cuda::EventPool::take(events_),
      .limit = options.deadline.value_or(config_.timeout_collective),
      .limit_flag = options.deadline ? options.deadline_flag : config_.collective_flag});
  operation->range =
      ranges::AsyncRange(call.phase(), {.bucket = call.bucket,
                                        .sequence = static_cast<std::int64_t>(call.sequence),
                                        .bytes = static_cast<std::int64_t>(call.bytes)});
  if (PeerProgress* progress = host().peer_progress()) progress->note_started(call.sequence);
  start_on_device(call, launch);
  operation->end->record(stream_.get());
  config_.flights->note(FlightPlane::kDevice, call, FlightState::kStarted);
  watchdog_->add(operation);
  return Work(std::make_shared<NcclWork>(operation->end, *watchdog_));
}

// NCCL may talk to the peers before it queues anything: one that has stopped does not answer.
void NcclCommunicator::start_on_device(const Call& call, const Launch& launch) {
  try {
    link_->launch(launch, [&] {
      if (const auto failure = host().failure_of_peer()) watchdog_->fail_with_peer(call, *failure);
    });
  } catch (const nccl::PeersLate& late) {
    watchdog_->fail_late(call, late.what());
  } catch (const core::CollectiveError& error) {
    watchdog_->fail_with_nccl(call, error.what());
  }
}

// The stream of the collectives joins the capture by the event of `after`, and leaves it where the
// work is waited for.
Work NcclCommunicator::launch_captured(const Call& call, const CollectiveOptions& options,
                                       const Launch& launch) {
  captured_.calls += 1;
  captured_.bytes += call.bytes;
  cuda::order(*cuda::EventPool::take(events_), options.after, stream_.get());
  start_on_device(call, launch);
  auto end = cuda::EventPool::take(events_);
  end->record(stream_.get());
  return Work(std::make_shared<CapturedWork>(std::move(end)));
}

void NcclCommunicator::begin_capture() noexcept {
  captures_ = true;
  captured_ = {};
  link_->note_graph(true);
}

void NcclCommunicator::end_capture() noexcept {
  if (std::exchange(captures_, false)) sequence_ -= captured_.calls;
}

// One operation for the watchdog, with as many numbers as there are collectives: a rank that takes
// this step without a graph counts the same.
void NcclCommunicator::replayed(Stream stream) {
  watchdog_->rethrow_failure();
  if (captured_.calls == 0) return;
  sequence_ += captured_.calls;
  const Call call{.kind = CallKind::kReplay,
                  .count = captured_.calls,
                  .sequence = sequence_,
                  .bytes = captured_.bytes};
  config_.flights->note(FlightPlane::kDevice, call, FlightState::kQueued);
  if (PeerProgress* progress = host().peer_progress()) progress->note_started(call.sequence);
  auto operation = std::make_shared<nccl::DeviceOperation>(
      nccl::DeviceOperation{.call = call,
                            .end = cuda::EventPool::take(events_),
                            .limit = config_.timeout_collective,
                            .limit_flag = config_.collective_flag});
  operation->end->record(stream);
  config_.flights->note(FlightPlane::kDevice, call, FlightState::kStarted);
  watchdog_->add(std::move(operation));
}

// Over the host, before NCCL sees the call: blocks, so it is for looking for a fault.
void NcclCommunicator::compare(const Call& call) {
  const std::string difference = call_difference(exchange(call_stamp(call), {.purpose = "calls"}));
  if (!difference.empty()) watchdog_->fail(call, difference);
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

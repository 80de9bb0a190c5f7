#include "comm/host_communicator.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "comm/build_check.hpp"
#include "comm/call_check.hpp"
#include "comm/job_setup.hpp"
#include "comm/life_line_setup.hpp"
#include "comm/mpi_check.hpp"
#include "comm/reduce.hpp"
#include "comm/shared_memory_room.hpp"
#include "core/base/error.hpp"
#include "core/base/warning.hpp"

namespace sidestream::comm {
namespace {

// Kept free in /dev/shm for others, MPI itself among them.
constexpr std::size_t kSpareBytes = std::size_t{16} << 20;

class HostWork final : public WorkState {
 public:
  HostWork(std::shared_ptr<Operation> operation, ProgressEngine& engine)
      : operation_(std::move(operation)), engine_(engine) {}

  void wait() override {
    if (!operation_->done()) engine_.wait(*operation_);
    operation_->rethrow_failure();
  }
  void wait_on(Stream) override { wait(); }
  bool done() const noexcept override { return operation_->done(); }
  std::optional<WorkSpan> span() const noexcept override { return operation_->span(); }

 private:
  std::shared_ptr<Operation> operation_;
  ProgressEngine& engine_;
};

}  // namespace

HostCommunicator::HostCommunicator(const CommunicatorConfig& config,
                                   std::shared_ptr<std::atomic<bool>> failed,
                                   std::vector<std::string>& warnings)
    : config_(config),
      failed_(std::move(failed)),
      uncaught_at_start_(std::uncaught_exceptions()),
      job_(join_job()) {
  require_one_build(job_.get());
  node_comm_ = split_by_node(job_.get(), rank_of(job_.get()));
  topology_ = find_topology(job_.get(), node_comm_.get());
  layout_ = find_layout(job_.get(), topology_);
  mpi_ = std::make_unique<MpiCollectives>(job_.get());
  if (config_.shared_memory) set_up_node(warnings);
  if (!board_ || topology_.node_count > 1) channel_ = std::make_unique<ControlChannel>(job_.get());
  const auto board_ranks =
      board_ ? layout_[static_cast<std::size_t>(topology_.node)] : std::vector<int>();
  const bool see_processes = every_rank(board_ && board_->sees_processes_of_all());
  lines_ = connect_life_lines(job_.get(), topology_,
                              see_processes ? Boards::kOnEveryNode : Boards::kNone);
  watch_ = std::make_unique<PeerWatch>(
      topology_,
      PeerWatch::Sources{.board = board_.get(), .channel = channel_.get(), .lines = lines_.get()},
      board_ranks);
  device_progress_ =
      std::make_unique<DeviceProgress>(topology_, board_.get(), channel_.get(), board_ranks);
  const Binding binding = Binding::of_this_process(topology_.local_size);
  engine_ = std::make_unique<ProgressEngine>(
      topology_.rank, *watch_, *config_.flights,
      binding.share() > 0 ? Backoff::Manner::kCaller : Backoff::Manner::kCallerAmongMany,
      ProgressEngine::Hooks{.on_failure = [flag = failed_] { flag->store(true); },
                            .before_throwing = [hook = config_.failure_hook] { hook->run(); }});
  const auto warning = binding_warning(binding);
  if (!every_rank(!warning.has_value()))
    warnings.push_back(
        warning.value_or("another rank is bound to fewer cores than its share of the node"));
}

bool HostCommunicator::every_rank(bool mine) {
  int all = mine ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, job_.get()),
            "MPI_Allreduce in setup");
  return all != 0;
}

void HostCommunicator::set_up_node(std::vector<std::string>& warnings) {
  const SharedMemoryRoom mine{
      .wanted = static_cast<std::size_t>(topology_.local_size) * NodeCollectives::kBounceBytes +
                kSpareBytes,
      .free = shared_memory_free_bytes()};
  const std::vector<SharedMemoryRoom> rooms = rooms_of_all(job_.get(), mine);
  if (const auto rank = first_without_room(rooms)) {
    warnings.push_back(space_warning(rooms[*rank], topology_.hosts[*rank]));
    return;
  }
  NodeMeeting node = meeting_over(node_comm_.get());
  node.huge_pages = config_.huge_pages;
  board_ = std::make_unique<NodeBoard>(node);
  windows_ = std::make_unique<WindowTable>(topology_.local_rank);
  windows_->add(SharedWindow(node, NodeCollectives::kBounceBytes));
  std::size_t lanes = layout_.front().size();
  for (const auto& ranks : layout_) lanes = std::min(lanes, ranks.size());
  const bool in_lane = static_cast<std::size_t>(topology_.local_rank) < lanes;
  if (topology_.node_count > 1) {
    lane_comm_ = split(job_.get(), in_lane ? topology_.local_rank : MPI_UNDEFINED, topology_.node);
    if (lane_comm_) lane_ = std::make_unique<MpiCollectives>(lane_comm_.get());
  }
  node_ =
      std::make_unique<NodeCollectives>(*board_, *windows_, layout_, topology_.node, lane_.get());
}

HostCommunicator::~HostCommunicator() {
  const bool orderly = close();
  engine_.reset();
  if (orderly) return;
  // A rank is gone: freeing what is shared with it would wait for it. The process is about to end
  // anyway.
  failed_->store(true);
  // MPI may still know buffers of operations that were cut short.
  static_cast<void>(mpi_.release());
  static_cast<void>(lane_.release());
  static_cast<void>(node_.release());
  static_cast<void>(windows_.release());
  static_cast<void>(lines_.release());  // open until the process ends: its peers see that then
  static_cast<void>(new std::vector<PageBlock>(std::move(private_blocks_)));
  if (channel_) channel_->abandon();
  lane_comm_.release();
  node_comm_.release();
  job_.release();
}

void HostCommunicator::leave() {
  if (has_left_ || engine_->failed() || announced_.load()) return;
  barrier({.purpose = "the end of the program"});
  engine_->run_exclusively([this] { watch_->note_left(); });
  has_left_ = true;
}

// Meets the peers a last time. False when that did not work or makes no sense: after a failure, its
// own or another's, or while an exception passes.
bool HostCommunicator::close() noexcept {
  try {
    if (std::uncaught_exceptions() > uncaught_at_start_) {
      announce_failure("rank " + std::to_string(topology_.rank) +
                       " stopped because of an exception");
    }
    if (engine_->failed()) return false;  // the peers were told then
    if (announced_.load()) {
      engine_->run_exclusively([this] { watch_->send_announcement(); });
      return false;
    }
    leave();
    return has_left_;
  } catch (const std::exception& error) {
    core::print_warning("this rank has left the program: " + std::string(error.what()));
    return false;
  }
}

Call HostCommunicator::next_call(CallKind kind, std::size_t count, core::DType dtype,
                                 std::size_t bytes, const CollectiveOptions& options) {
  return {.kind = kind,
          .dtype = dtype,
          .count = count,
          .sequence = ++sequence_,
          .bytes = bytes,
          .bucket = options.bucket,
          .model = options.model,
          .purpose = options.purpose};
}

std::shared_ptr<Operation> HostCommunicator::start(const Call& call, Steps steps,
                                                   const CollectiveOptions& options) {
  if (config_.check_collectives) steps = compared(call, std::move(steps));
  auto operation = std::make_shared<Operation>(
      call, std::move(steps), options.deadline.value_or(config_.timeout_collective),
      options.deadline ? options.deadline_flag : config_.collective_flag);
  engine_->submit(operation, options.waits_at_once ? ProgressEngine::DrivenBy::kCaller
                                                   : ProgressEngine::DrivenBy::kAnyThread);
  return operation;
}

Work HostCommunicator::started(const Call& call, Steps steps, const CollectiveOptions& options) {
  return Work(std::make_shared<HostWork>(start(call, std::move(steps), options), *engine_));
}

// An operation over MPI; where there is a board, the ranks of the node first compare their calls on
// it.
Steps HostCommunicator::checked(Call call, Steps steps) {
  if (node_) {
    Steps agreement = node_->agree(call);
    co_await all_finished(agreement);
  }
  co_await all_finished(steps);
}

// All ranks of the job say what they call, before the call itself.
Steps HostCommunicator::compared(Call call, Steps steps) {
  std::vector<std::string> stamps;
  Steps exchange = mpi_->exchange(call_stamp(call), stamps);
  co_await all_finished(exchange);
  if (const std::string difference = call_difference(stamps); !difference.empty())
    throw core::CollectiveError(difference);
  co_await all_finished(steps);
}

Work HostCommunicator::all_reduce(void* data, std::size_t count, core::DType dtype,
                                  const CollectiveOptions& options) {
  require_summable(dtype);
  const Call call =
      next_call(CallKind::kAllReduce, count, dtype, count * core::size_of(dtype), options);
  auto* bytes = static_cast<std::byte*>(data);
  return started(call,
                 node_ ? node_->all_reduce(call, bytes) : mpi_->all_reduce(bytes, count, dtype),
                 options);
}

Work HostCommunicator::reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                                      core::DType dtype, const CollectiveOptions& options) {
  require_summable(dtype);
  const std::size_t bytes =
      count_per_rank * core::size_of(dtype) * static_cast<std::size_t>(size());
  const Call call = next_call(CallKind::kReduceScatter, count_per_rank, dtype, bytes, options);
  const auto* from = static_cast<const std::byte*>(input);
  auto* to = static_cast<std::byte*>(output);
  if (node_ && node_->nodes_are_equal())
    return started(call, node_->reduce_scatter(call, from, to), options);
  return started(call, checked(call, mpi_->reduce_scatter(from, to, count_per_rank, dtype)),
                 options);
}

Work HostCommunicator::all_gather(const void* input, void* output, std::size_t count_per_rank,
                                  core::DType dtype, const CollectiveOptions& options) {
  const std::size_t bytes = count_per_rank * core::size_of(dtype);
  const Call call = next_call(CallKind::kAllGather, count_per_rank, dtype, bytes, options);
  const auto* from = static_cast<const std::byte*>(input);
  auto* to = static_cast<std::byte*>(output);
  if (node_ && node_->nodes_are_equal())
    return started(call, node_->all_gather(call, from, to), options);
  return started(call, checked(call, mpi_->all_gather(from, to, bytes)), options);
}

Work HostCommunicator::broadcast(void* data, std::size_t count, core::DType dtype, int root,
                                 const CollectiveOptions& options) {
  if (root < 0 || root >= size()) {
    throw core::Error("broadcast from rank " + std::to_string(root) + ": there are ranks 0 to " +
                      std::to_string(size() - 1));
  }
  const std::size_t bytes = count * core::size_of(dtype);
  Call call = next_call(CallKind::kBroadcast, count, dtype, bytes, options);
  call.root = root;
  return started(call, checked(call, mpi_->broadcast(static_cast<std::byte*>(data), bytes, root)),
                 options);
}

void HostCommunicator::barrier(const CollectiveOptions& options) {
  const Call call = next_call(CallKind::kBarrier, 0, core::DType::kUInt8, 0, options);
  const bool board_is_enough = node_ && topology_.node_count == 1;
  // On this thread: whatever phase it is in does nothing meanwhile.
  const ranges::ScopedRange range(call.phase(), call.payload());
  engine_->wait(*start(call, board_is_enough ? node_->agree(call) : checked(call, mpi_->barrier()),
                       waited_for(options)));
}

std::vector<std::string> HostCommunicator::exchange(std::string_view mine,
                                                    const CollectiveOptions& options) {
  const Call call = next_call(CallKind::kExchange, 0, core::DType::kUInt8, mine.size(), options);
  std::vector<std::string> all;
  engine_->wait(
      *start(call, checked(call, mpi_->exchange(std::string(mine), all)), waited_for(options)));
  return all;
}

CollectiveOptions HostCommunicator::of_setup(const Purpose& purpose) const {
  return {
      .deadline = config_.timeout_setup, .deadline_flag = config_.setup_flag, .purpose = purpose};
}

// Among the ranks of this node, within the deadline of the setup. Every rank of the job takes part:
// the nodes meet at once.
NodeMeeting HostCommunicator::meeting_here() {
  const auto meet_all = [this](std::string_view mine) {
    return exchange(mine, of_setup("shared windows"));
  };
  const auto meet = [this, meet_all](std::string_view mine) {
    const std::vector<std::string> all = meet_all(mine);
    std::vector<std::string> here;
    for (const int rank : layout_[static_cast<std::size_t>(topology_.node)])
      here.push_back(all[static_cast<std::size_t>(rank)]);
    return here;
  };
  return {.rank = topology_.local_rank,
          .size = topology_.local_size,
          .exchange = meet,
          .exchange_with_all_nodes = meet_all,
          .huge_pages = config_.huge_pages};
}

// The same answer on all ranks. Where a node has too little room, the first rank says so, once.
bool HostCommunicator::fits_in_windows(std::string_view call, std::size_t bytes,
                                       std::size_t bytes_per_rank) {
  const std::size_t node_bytes =
      SharedWindow::segment_bytes(bytes_per_rank) * static_cast<std::size_t>(topology_.local_size);
  const SharedMemoryRoom mine{.wanted = node_bytes + kSpareBytes,
                              .free = windows_ ? shared_memory_free_bytes() : 0};
  const std::string asked = std::to_string(bytes);
  std::vector<SharedMemoryRoom> rooms;
  for (const std::string& peer :
       exchange(asked + " " + mine.text(), of_setup("allocation sizes"))) {
    const std::size_t end = peer.find(' ');
    if (peer.substr(0, end) != asked)
      throw core::CollectiveError(std::string(call) + ": this rank asks for " + asked +
                                  " bytes, another for " + peer.substr(0, end) +
                                  ": every rank must ask for the same");
    rooms.push_back(SharedMemoryRoom::from(peer.substr(end)));
  }
  const auto rank = first_without_room(rooms);
  if (!rank) return true;
  const bool is_first_news =
      topology_.rank == 0 && windows_ && !std::exchange(warned_about_space_, true);
  if (is_first_news) core::print_warning(space_warning(rooms[*rank], topology_.hosts[*rank]));
  return false;
}

Allocation HostCommunicator::allocate(std::size_t bytes) {
  if (!fits_in_windows("allocate", bytes, bytes)) return allocate_privately(bytes);
  return {.data = windows_->add(SharedWindow(meeting_here(), bytes)), .bytes = bytes};
}

// The segments of a window follow one another: together they are the one copy, each rank's part
// near it.
std::shared_ptr<std::byte> HostCommunicator::allocate_shared(std::size_t bytes) {
  if (topology_.node_count > 1) return nullptr;
  const auto ranks = static_cast<std::size_t>(topology_.local_size);
  const std::size_t bytes_per_rank = (bytes + ranks - 1) / ranks;
  if (!fits_in_windows("allocate_shared", bytes, bytes_per_rank)) return nullptr;
  const auto window = std::make_shared<const SharedWindow>(meeting_here(), bytes_per_rank);
  return {window, window->segment(0)};
}

Allocation HostCommunicator::allocate_privately(std::size_t bytes) {
  std::string problem = "ok";
  try {
    private_blocks_.emplace_back(bytes);
  } catch (const core::MemoryError& error) {
    problem = error.what();
  }
  for (const std::string& peer : exchange(problem, of_setup("allocations"))) {
    if (peer != "ok") throw core::MemoryError("allocate on one of the ranks: " + peer);
  }
  return {.data = private_blocks_.back().data(), .bytes = bytes};
}

// An idle progress thread takes in messages of other nodes: they show in its failure.
std::optional<PeerFailure> HostCommunicator::failure_of_peer() const {
  if (board_) {
    if (auto message = board_->failure_of_peer()) return PeerFailure{.text = std::move(*message)};
  }
  return engine_->failure_of_peer();
}

void HostCommunicator::announce_failure(std::string_view message) noexcept {
  announced_.store(true);
  watch_->announce_failure(message);
  engine_->send_announcement_now();
}

}  // namespace sidestream::comm

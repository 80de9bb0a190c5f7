#include "tests/parallel/thread_communicator.hpp"

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <ATen/Parallel.h>

#include "core/base/error.hpp"
#include "core/base/float16.hpp"

namespace sidestream::test {

// What one rank brings to an operation.
struct Call {
  std::string kind;  // name and everything that must be the same on all ranks
  std::byte* data = nullptr;
  std::byte* output = nullptr;  // where it is not the data
  std::string payload = {};
};

namespace {

using Action = std::function<void(std::vector<Call>&)>;

constexpr auto kDeadline = std::chrono::seconds(20);

std::string bucket_text(const comm::CollectiveOptions& options) {
  return "bucket " + std::to_string(options.bucket) + " of model " + std::to_string(options.model);
}

// Left in the calls' own memory, from element `begin` on, `count` of them for each rank.
template <typename Element, typename Total>
void sum(std::vector<Call>& calls, std::size_t begin, std::size_t count,
         const std::vector<std::byte*>& outputs) {
  for (std::size_t i = 0; i < count; ++i) {
    Total total = 0;
    for (const Call& call : calls)
      total += static_cast<Total>(reinterpret_cast<Element*>(call.data)[begin + i]);
    for (std::byte* output : outputs) reinterpret_cast<Element*>(output)[i] = Element(total);
  }
}

void sum(std::vector<Call>& calls, std::size_t begin, std::size_t count, core::DType dtype,
         const std::vector<std::byte*>& outputs) {
  switch (dtype) {
    case core::DType::kFloat32:
      return sum<float, float>(calls, begin, count, outputs);
    case core::DType::kBFloat16:
      return sum<core::BFloat16, float>(calls, begin, count, outputs);
    case core::DType::kFloat16:
      return sum<core::Float16, float>(calls, begin, count, outputs);
    case core::DType::kInt64:
      return sum<std::int64_t, std::int64_t>(calls, begin, count, outputs);
    default:
      throw core::Error(
          "The communicator of threads sums float32, bfloat16, float16 and int64 only.");
  }
}

Action summing(std::size_t count, core::DType dtype) {
  return [=](std::vector<Call>& calls) {
    std::vector<std::byte*> outputs;
    for (const Call& call : calls) outputs.push_back(call.data);
    sum(calls, 0, count, dtype, outputs);
  };
}

Action summing_slices(std::size_t count_per_rank, core::DType dtype) {
  return [=](std::vector<Call>& calls) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank)
      sum(calls, rank * count_per_rank, count_per_rank, dtype, {calls[rank].output});
  };
}

Action gathering(std::size_t bytes_per_rank) {
  return [=](std::vector<Call>& calls) {
    for (const Call& to : calls) {
      for (std::size_t rank = 0; rank < calls.size(); ++rank)
        std::memmove(to.output + rank * bytes_per_rank, calls[rank].data, bytes_per_rank);
    }
  };
}

struct Operation {
  std::vector<Call> calls;
  int arrived = 0;
  bool done = false;  // carried out: a failure that comes later does not undo it
};

}  // namespace

class ThreadGroup {
 public:
  explicit ThreadGroup(int size) : size_(size) {}

  int size() const noexcept { return size_; }

  void arrive(std::size_t sequence, int rank, Call call, const Action& action) {
    const std::lock_guard lock(mutex_);
    Operation& operation = operations_[sequence];
    operation.calls.resize(static_cast<std::size_t>(size_));
    operation.calls[static_cast<std::size_t>(rank)] = std::move(call);
    if (++operation.arrived < size_) return;
    for (const Call& other : operation.calls) {
      if (other.kind != operation.calls[0].kind && failure_.empty()) {
        failure_ =
            "Ranks called different operations: " + operation.calls[0].kind + " and " + other.kind;
      }
    }
    if (failure_.empty()) {
      action(operation.calls);
      operation.done = true;
    }
    changed_.notify_all();
  }

  // The payloads of all ranks.
  std::vector<std::string> wait(std::size_t sequence) {
    std::unique_lock lock(mutex_);
    Operation& operation = operations_[sequence];
    const bool in_time =
        changed_.wait_for(lock, kDeadline, [&] { return operation.done || !failure_.empty(); });
    if (!operation.done && !failure_.empty()) throw core::PeerError(failure_);
    if (!in_time)
      throw core::CollectiveError("Operation " + std::to_string(sequence) +
                                  " ran past its deadline.");
    std::vector<std::string> payloads;
    for (const Call& call : operation.calls) payloads.push_back(call.payload);
    return payloads;
  }

  bool done(std::size_t sequence) {
    const std::lock_guard lock(mutex_);
    return operations_[sequence].done || !failure_.empty();
  }

  void fail(std::string_view message) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = message;
    changed_.notify_all();
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Operation> operations_;
  std::string failure_;
};

namespace {

class ThreadWork : public comm::WorkState {
 public:
  ThreadWork(std::shared_ptr<ThreadGroup> group, std::size_t sequence,
             std::optional<std::chrono::nanoseconds> claimed)
      : group_(std::move(group)), sequence_(sequence), claimed_(claimed) {}
  void wait() override { group_->wait(sequence_); }
  void wait_on(comm::Stream /*stream*/) override { wait(); }
  bool done() const noexcept override { return group_->done(sequence_); }
  std::optional<comm::WorkSpan> span() const noexcept override {
    if (!claimed_) return std::nullopt;
    return comm::WorkSpan{.begin_ns = 0, .end_ns = claimed_->count()};
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  std::size_t sequence_;
  std::optional<std::chrono::nanoseconds> claimed_;
};

comm::Topology topology_of(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .hosts = std::vector<std::string>(static_cast<std::size_t>(size), "here")};
}

std::shared_ptr<std::byte> zeroed_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage + kPage;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kPage, rounded));
  std::memset(data, 0, rounded);
  return {data, [](std::byte* pointer) { std::free(pointer); }};
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank)
    : group_(std::move(group)), topology_(topology_of(rank, group_->size())) {}
ThreadCommunicator::~ThreadCommunicator() = default;

comm::Work ThreadCommunicator::all_reduce(void* data, std::size_t count, core::DType dtype,
                                          const comm::CollectiveOptions& options) {
  reduced_buckets_.push_back(options.bucket);
  const std::string kind = "all_reduce of " + bucket_text(options) + ", " + std::to_string(count) +
                           " " + std::string(core::name_of(dtype));
  const std::size_t sequence = sequence_++;
  group_->arrive(sequence, rank(), {.kind = kind, .data = static_cast<std::byte*>(data)},
                 summing(count, dtype));
  return comm::Work(std::make_shared<ThreadWork>(group_, sequence, claimed_));
}

comm::Work ThreadCommunicator::started(const std::string& kind, const void* input, void* output,
                                       const Action& action) {
  const std::size_t sequence = sequence_++;
  group_->arrive(sequence, rank(),
                 {.kind = kind,
                  .data = static_cast<std::byte*>(const_cast<void*>(input)),
                  .output = static_cast<std::byte*>(output)},
                 action);
  return comm::Work(std::make_shared<ThreadWork>(group_, sequence, claimed_));
}

comm::Work ThreadCommunicator::reduce_scatter(const void* input, void* output,
                                              std::size_t count_per_rank, core::DType dtype,
                                              const comm::CollectiveOptions& options) {
  reduced_buckets_.push_back(options.bucket);
  return started("reduce_scatter of " + bucket_text(options) + ", " +
                     std::to_string(count_per_rank) + " " + std::string(core::name_of(dtype)),
                 input, output, summing_slices(count_per_rank, dtype));
}

comm::Work ThreadCommunicator::all_gather(const void* input, void* output,
                                          std::size_t count_per_rank, core::DType dtype,
                                          const comm::CollectiveOptions& options) {
  const std::size_t bytes = count_per_rank * core::size_of(dtype);
  gathered_bytes_ += bytes * static_cast<std::size_t>(size());
  return started("all_gather of " + bucket_text(options) + ", " + std::to_string(bytes) + " bytes",
                 input, output, gathering(bytes));
}

comm::Work ThreadCommunicator::broadcast(void* data, std::size_t count, core::DType dtype, int root,
                                         const comm::CollectiveOptions&) {
  const std::size_t bytes = count * core::size_of(dtype);
  const std::size_t sequence = sequence_++;
  const Action copy = [=](std::vector<Call>& calls) {
    for (const Call& call : calls)
      std::memmove(call.data, calls.at(static_cast<std::size_t>(root)).data, bytes);
  };
  group_->arrive(sequence, rank(),
                 {.kind = "broadcast of " + std::to_string(bytes) + " bytes",
                  .data = static_cast<std::byte*>(data)},
                 copy);
  return comm::Work(std::make_shared<ThreadWork>(group_, sequence, claimed_));
}

void ThreadCommunicator::barrier(const comm::CollectiveOptions& options) { exchange("", options); }

std::vector<std::string> ThreadCommunicator::exchange(std::string_view mine,
                                                      const comm::CollectiveOptions&) {
  const std::size_t sequence = sequence_++;
  group_->arrive(sequence, rank(), {.kind = "exchange", .payload = std::string(mine)},
                 [](std::vector<Call>&) {});
  return group_->wait(sequence);
}

comm::Allocation ThreadCommunicator::allocate(std::size_t bytes) {
  memory_.push_back(zeroed_pages(bytes));
  return {.data = memory_.back().get(), .bytes = bytes};
}

std::shared_ptr<std::byte> ThreadCommunicator::allocate_shared(std::size_t bytes) {
  if (!shares_memory_) return nullptr;
  std::shared_ptr<std::byte> memory = rank() == 0 ? zeroed_pages(bytes) : nullptr;
  const auto* mine = &memory;
  const std::string of_first =
      exchange({reinterpret_cast<const char*>(&mine), sizeof mine}).front();
  std::memcpy(&mine, of_first.data(), sizeof mine);
  if (rank() != 0) memory = *mine;
  barrier();  // until all have it
  return memory;
}

void ThreadCommunicator::announce_failure(std::string_view message) noexcept {
  group_->fail(message);
}

std::vector<std::exception_ptr> run_ranks_collecting(
    int ranks, const std::function<void(ThreadCommunicator&)>& work) {
  const auto group = std::make_shared<ThreadGroup>(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  const auto run_rank = [&](int rank) {
    at::set_num_threads(1);
    ThreadCommunicator communicator(group, rank);
    try {
      work(communicator);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
      communicator.announce_failure(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_ranks(int ranks, const std::function<void(ThreadCommunicator&)>& work) {
  for (const std::exception_ptr& error : run_ranks_collecting(ranks, work)) {
    if (error) std::rethrow_exception(error);
  }
}

std::string message_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  }
}

}  // namespace sidestream::test

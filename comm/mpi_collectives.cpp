#include "comm/mpi_collectives.hpp"

#include <algorithm>
#include <cstring>

#include "comm/mpi_check.hpp"
#include "comm/reduce.hpp"
#include "comm/slice.hpp"
#include "comm/transfers.hpp"

namespace sidestream::comm {
namespace {

constexpr std::size_t kLargestChunk = std::size_t{1} << 20;
constexpr std::size_t kSmallestChunk = std::size_t{128} << 10;
constexpr std::size_t kBroadcastChunk = std::size_t{4} << 20;

// Several chunks of every buffer that is not tiny: the cable carries one while the sum of another
// is made and its first byte comes back.
std::size_t chunk_bytes(std::size_t buffer_bytes, std::size_t lanes) {
  return std::clamp(buffer_bytes / (2 * lanes), kSmallestChunk, kLargestChunk);
}

}  // namespace

MpiCollectives::MpiCollectives(MPI_Comm comm)
    : comm_(comm), rank_(rank_of(comm)), size_(size_of(comm)) {}

// received: one slice a rank, this rank's place unused. The inputs of a sum, in rank order.
std::vector<const std::byte*> MpiCollectives::inputs_with_own(const Scratch& received,
                                                              const std::byte* own,
                                                              std::size_t slice_bytes) const {
  std::vector<const std::byte*> inputs;
  for (int peer = 0; peer < size_; ++peer) {
    inputs.push_back(
        peer == rank_ ? own : received.data() + static_cast<std::size_t>(peer) * slice_bytes);
  }
  return inputs;
}

Steps MpiCollectives::all_reduce(std::byte* data, std::size_t count, core::DType dtype,
                                 PartWork work) {
  Steps first = all_reduce_lane(0, data, count, dtype, work);
  Steps second = all_reduce_lane(1, data, count, dtype, work);
  co_await all_finished(first, second);
}

Steps MpiCollectives::all_reduce_lane(std::size_t lane, std::byte* data, std::size_t count,
                                      core::DType dtype, const PartWork& work) {
  const std::size_t element_bytes = core::size_of(dtype);
  const std::size_t chunk_count = chunk_bytes(count * element_bytes, kLanes) / element_bytes;
  Scratch& received = scratch_[lane];
  for (std::size_t at = lane * chunk_count; at < count; at += kLanes * chunk_count) {
    const std::size_t part = std::min(chunk_count, count - at);
    if (work.before) work.before(at, part);
    const Slicing slices(part, size_);
    std::byte* chunk = data + at * element_bytes;
    const Slice mine = slices.of(rank_);
    const std::size_t mine_bytes = mine.count * element_bytes;
    std::byte* own = chunk + mine.begin * element_bytes;
    received.resize(std::max(received.size(), static_cast<std::size_t>(size_) * mine_bytes));

    Transfers scatter(comm_, static_cast<int>(lane));
    for (int step = 1; step < size_; ++step) {  // everyone starts with another peer
      const int to = (rank_ + step) % size_;
      const int from = (rank_ + size_ - step) % size_;
      const Slice theirs = slices.of(to);
      scatter.receive(from, received.data() + static_cast<std::size_t>(from) * mine_bytes,
                      mine_bytes);
      scatter.send(to, chunk + theirs.begin * element_bytes, theirs.count * element_bytes);
    }
    co_await until([&scatter] { return scatter.done(); });

    const auto inputs = inputs_with_own(received, own, mine_bytes);
    sum_in_order(inputs, {&own, 1}, mine.count, dtype);

    Transfers gather(comm_, static_cast<int>(lane));
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_;
      const int from = (rank_ + size_ - step) % size_;
      const Slice theirs = slices.of(from);
      gather.receive(from, chunk + theirs.begin * element_bytes, theirs.count * element_bytes);
      gather.send(to, own, mine_bytes);
    }
    co_await until([&gather] { return gather.done(); });
    if (work.after) work.after(at, part);
  }
}

Steps MpiCollectives::reduce_scatter(const std::byte* input, std::byte* output,
                                     std::size_t count_per_rank, core::DType dtype, PartWork work) {
  Steps first = reduce_scatter_lane(0, input, output, count_per_rank, dtype, work);
  Steps second = reduce_scatter_lane(1, input, output, count_per_rank, dtype, work);
  co_await all_finished(first, second);
}

Steps MpiCollectives::reduce_scatter_lane(std::size_t lane, const std::byte* input,
                                          std::byte* output, std::size_t count_per_rank,
                                          core::DType dtype, const PartWork& work) {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t element_bytes = core::size_of(dtype);
  const std::size_t slice_bytes = count_per_rank * element_bytes;
  const std::size_t chunk_count =
      std::max<std::size_t>(1, chunk_bytes(ranks * slice_bytes, kLanes) / element_bytes / ranks);
  Scratch& received = scratch_[lane];
  for (std::size_t at = lane * chunk_count; at < count_per_rank; at += kLanes * chunk_count) {
    const std::size_t count = std::min(chunk_count, count_per_rank - at);
    const std::size_t bytes = count * element_bytes;
    const std::byte* from_here = input + at * element_bytes;
    if (work.before) work.before(at, count);
    received.resize(std::max(received.size(), ranks * bytes));
    Transfers transfers(comm_, static_cast<int>(lane));
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_;
      const int from = (rank_ + size_ - step) % size_;
      transfers.receive(from, received.data() + static_cast<std::size_t>(from) * bytes, bytes);
      transfers.send(to, from_here + static_cast<std::size_t>(to) * slice_bytes, bytes);
    }
    co_await until([&transfers] { return transfers.done(); });
    const std::byte* own = from_here + static_cast<std::size_t>(rank_) * slice_bytes;
    std::byte* result = output + at * element_bytes;
    sum_in_order(inputs_with_own(received, own, bytes), {&result, 1}, count, dtype);
    if (work.after) work.after(at, count);
  }
}

Steps MpiCollectives::all_gather(const std::byte* input, std::byte* output,
                                 std::size_t bytes_per_rank) {
  std::byte* own = output + static_cast<std::size_t>(rank_) * bytes_per_rank;
  if (own != input && bytes_per_rank > 0) std::memmove(own, input, bytes_per_rank);
  Transfers transfers(comm_);
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_;
    const int from = (rank_ + size_ - step) % size_;
    transfers.receive(from, output + static_cast<std::size_t>(from) * bytes_per_rank,
                      bytes_per_rank);
    transfers.send(to, own, bytes_per_rank);
  }
  co_await until([&transfers] { return transfers.done(); });
}

Steps MpiCollectives::broadcast(std::byte* data, std::size_t bytes, int root) {
  for (std::size_t at = 0; at < bytes; at += kBroadcastChunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int length = static_cast<int>(std::min(kBroadcastChunk, bytes - at));
    check_mpi(MPI_Ibcast(data + at, length, MPI_BYTE, root, comm_, &request), "MPI_Ibcast");
    Transfers transfer(comm_);
    transfer.add(request);
    co_await until([&transfer] { return transfer.done(); });
  }
}

Steps MpiCollectives::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  Transfers transfer(comm_);
  transfer.add(request);
  co_await until([&transfer] { return transfer.done(); });
}

Steps MpiCollectives::exchange(std::string mine, std::vector<std::string>& all) {
  std::vector<int> lengths(static_cast<std::size_t>(size_));
  const int length = static_cast<int>(mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_, &request),
            "MPI_Iallgather");
  Transfers sizes(comm_);
  sizes.add(request);
  co_await until([&sizes] { return sizes.done(); });

  std::vector<int> offsets;
  int total = 0;
  for (const int bytes : lengths) {
    offsets.push_back(total);
    total += bytes;
  }
  std::string joined(static_cast<std::size_t>(total), '\0');
  check_mpi(MPI_Iallgatherv(mine.data(), length, MPI_CHAR, joined.data(), lengths.data(),
                            offsets.data(), MPI_CHAR, comm_, &request),
            "MPI_Iallgatherv");
  Transfers payloads(comm_);
  payloads.add(request);
  co_await until([&payloads] { return payloads.done(); });
  for (std::size_t peer = 0; peer < lengths.size(); ++peer) {
    all.push_back(joined.substr(static_cast<std::size_t>(offsets[peer]),
                                static_cast<std::size_t>(lengths[peer])));
  }
}

}  // namespace sidestream::comm

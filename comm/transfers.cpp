#include "comm/transfers.hpp"

#include <algorithm>
#include <string>

#include "comm/mpi_check.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

// Blocks are cut, the same way on both sides, into messages that Open MPI sends over TCP without
// asking first (btl_tcp_eager_limit is 64 KiB with its header). Larger ones wait for a word of the
// receiver, which waits behind all that the receiver itself has queued for the same socket: the
// cable then works one way at a time, at half its rate.
constexpr std::size_t kMessageBytes = std::size_t{60} << 10;

// Open MPI looks at its sockets only in every eighth call, and a driver that finds nothing goes to
// sleep.
constexpr int kTestsBeforeGivingUp = 8;

}  // namespace

void Transfers::send(int rank, const std::byte* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kMessageBytes) {
    const int length = static_cast<int>(std::min(kMessageBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(data + at, length, MPI_BYTE, rank, tag_, comm_, &request), "MPI_Isend");
    add(request);
  }
}

void Transfers::receive(int rank, std::byte* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kMessageBytes) {
    const int length = static_cast<int>(std::min(kMessageBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(data + at, length, MPI_BYTE, rank, tag_, comm_, &request), "MPI_Irecv");
    add(request);
    expected_.back() = {.rank = rank, .bytes = static_cast<std::size_t>(length)};
  }
}

void Transfers::add(MPI_Request request) {
  requests_.push_back(request);
  expected_.emplace_back();
}

bool Transfers::done() {
  if (requests_.empty()) return true;
  int all = 0;
  std::vector<MPI_Status> statuses(requests_.size());
  for (int i = 0; i < kTestsBeforeGivingUp && all == 0; ++i) {
    const int code =
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, statuses.data());
    if (code == MPI_ERR_IN_STATUS) check(statuses);
    check_mpi(code, "MPI_Testall");
  }
  if (all == 0) return false;
  check(statuses);
  requests_.clear();
  expected_.clear();
  return true;
}

void Transfers::check(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (expected_[i].rank < 0) continue;
    const std::string peer = "rank " + std::to_string(expected_[i].rank) + " of the group";
    const int error = statuses[i].MPI_ERROR;
    if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) check_mpi(error, "message from " + peer);
    int received = 0;
    check_mpi(MPI_Get_count(&statuses[i], MPI_BYTE, &received), "MPI_Get_count");
    if (error == MPI_SUCCESS && static_cast<std::size_t>(received) < expected_[i].bytes) {
      throw core::CollectiveError(peer + " sent " + std::to_string(received) + " bytes, expected " +
                                  std::to_string(expected_[i].bytes) +
                                  ": every rank must call the operation with the same count");
    }
  }
}

}  // namespace sidestream::comm

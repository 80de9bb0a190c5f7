// Small messages between progress threads on a communicator of their own: "are you at operation
// 41?", "I am", "I failed because". Only for ranks that share no notice board. Everything is sent
// eagerly and nothing waits, so that a rank that is gone delays nobody. Used under the driver's
// lock.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi_handles.hpp"

namespace sidestream::comm {

class ControlChannel {
 public:
  explicit ControlChannel(MPI_Comm job);

  void poll();  // takes in what has come and answers
  void note_started(std::uint64_t sequence) noexcept { started_ = sequence; }
  void ask_everyone();  // forgets what is known and asks again
  // Last operation that a rank is known to have started; nothing if it has not answered.
  std::optional<std::uint64_t> started_by(int rank) const {
    return known_[static_cast<std::size_t>(rank)];
  }
  void announce_failure(std::string_view message);
  bool all_sent() const noexcept { return outgoing_.empty(); }
  const std::optional<std::string>& failure_of_peer() const noexcept { return failure_; }
  void abandon() noexcept { comm_.release(); }

 private:
  struct Message {
    std::uint64_t started;
    std::array<char, 1500> text;
  };
  struct Outgoing {
    Message message;
    MPI_Request request;
  };
  enum class Tag : int { kQuestion = 1, kAnswer = 2, kFailure = 3 };

  void send(int rank, Tag tag, const Message& message);
  void receive(const MPI_Status& waiting);
  void drop_sent();

  UniqueMpiComm comm_;
  int rank_;
  std::uint64_t started_ = 0;
  std::vector<std::optional<std::uint64_t>> known_;
  std::list<Outgoing> outgoing_;
  std::optional<std::string> failure_;
};

}  // namespace sidestream::comm

// Small messages between progress threads on a communicator of their own: "are you at operation
// 41?", "I am", "I failed because". Only for ranks that share no notice board. Everything is sent
// eagerly and nothing waits, so that a rank that is gone delays nobody. Used under the driver's
// lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
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
  // A progress thread that idles looks for questions every 20 ms; it may have to wait for a
  // processor.
  static constexpr std::chrono::milliseconds kTimeToAnswer{200};

  explicit ControlChannel(MPI_Comm job);

  void poll();  // takes in what has come and answers
  void note_started(std::uint64_t sequence) noexcept { started_ = sequence; }
  void ask_everyone();  // forgets what is known and asks again
  void ask_again();     // what was answered before stays known until the new answer
  // Last operation that a rank is known to have started; nothing if it has not answered.
  std::optional<std::uint64_t> started_by(int rank) const {
    return known_[static_cast<std::size_t>(rank)];
  }
  // To all but `dead`, to whom sending may end this process, too; -1: nobody is.
  void announce_failure(std::string_view message, int dead);

  // Operations on a device, of which the driver knows nothing. Callable from any thread; answers
  // come in while somebody polls.
  void note_device_started(std::uint64_t sequence) noexcept { device_started_.store(sequence); }
  void ask_everyone_with_next_poll() noexcept { ask_everyone_.store(true); }
  void ask_again_with_next_poll() noexcept { ask_again_.store(true); }
  std::optional<std::uint64_t> device_started_by(int rank) const noexcept;

  bool all_sent() const noexcept { return outgoing_.empty(); }
  const std::optional<std::string>& failure_of_peer() const noexcept { return failure_; }
  void abandon() noexcept { comm_.release(); }

 private:
  struct Message {
    std::uint64_t started;
    std::uint64_t device_started;
    std::array<char, 1500> text;
  };
  struct Outgoing {
    Message message;
    MPI_Request request;
  };
  enum class Tag : int { kQuestion = 1, kAnswer = 2, kFailure = 3 };

  Message message_of(std::string_view text = {}) const;
  void send(int rank, Tag tag, const Message& message);
  void receive(const MPI_Status& waiting);
  void drop_sent();

  UniqueMpiComm comm_;
  int rank_;
  std::uint64_t started_ = 0;
  std::vector<std::optional<std::uint64_t>> known_;
  std::atomic<std::uint64_t> device_started_{0};
  std::atomic<bool> ask_everyone_{false}, ask_again_{false};
  std::vector<std::atomic<std::int64_t>> known_on_device_;  // -1: nothing
  std::list<Outgoing> outgoing_;
  std::optional<std::string> failure_;
};

}  // namespace sidestream::comm

// How far the other ranks are and whether one has failed: over the node's board where there is one,
// by messages for all others. Used under the driver's lock, except announce_failure.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/control_channel.hpp"
#include "comm/life_lines.hpp"
#include "comm/memory_kills.hpp"
#include "comm/node_board.hpp"
#include "comm/peer_processes.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

class PeerWatch {
 public:
  // Each may be null; board_ranks are the ranks in the job of the board's slots.
  struct Sources {
    NodeBoard* board = nullptr;
    ControlChannel* channel = nullptr;
    LifeLines* lines = nullptr;
  };
  PeerWatch(const Topology& topology, const Sources& sources, std::vector<int> board_ranks);

  void note_started(std::uint64_t sequence);
  void poll();  // cheap: messages are looked for once a millisecond
  std::optional<std::string> failure_of_peer() const;
  const std::optional<std::string>& death_of_peer() const noexcept { return death_; }
  // Whether this rank is the one that tells people about a failure that all see, see has_turn().
  bool may_speak(std::chrono::steady_clock::time_point since) noexcept;
  void ask_everyone();  // before describe_missing, with time to answer between
  void ask_again();     // just before it
  // Until when answers to ask_again() are waited for; nothing where all share a board.
  std::chrono::milliseconds time_to_answer() const noexcept;
  std::string describe_missing(std::uint64_t sequence) const;

  // Callable from any thread. The board is written at once, messages go out with the next poll.
  void announce_failure(std::string_view message) noexcept;
  // To ranks that cannot see it on the board.
  void announce_death(std::string_view message) noexcept;
  // What announce_failure() was told first.
  std::optional<std::string> announced() const;
  bool sends_messages() const noexcept { return channel_ != nullptr; }
  void send_announcement();
  // Sends it and lets MPI work until it has left, or the time is over. Never throws.
  void flush_announcement(std::chrono::milliseconds limit) noexcept;

  // This rank has met the others a last time: its end is none to worry about.
  void note_left() noexcept;

 private:
  void queue(std::string_view message) noexcept;
  std::string silence_of(int slot) const;
  void look_for_the_dead(std::chrono::steady_clock::time_point now);
  void look_on_this_node(std::chrono::steady_clock::time_point now);
  void look_at_lines(std::chrono::steady_clock::time_point now);
  // Of this host since this rank has begun to watch; empty: not known.
  std::optional<std::int64_t> memory_kills() const noexcept;
  // `how` it ended, as far as that is known.
  void note_death(int rank, const std::string& how, const std::string& activity);
  // Empty: it has come to the operation.
  std::string description_of(int rank, std::uint64_t sequence) const;

  const Topology& topology_;
  NodeBoard* board_;
  ControlChannel* channel_;
  LifeLines* lines_;
  std::vector<int> slot_of_rank_;  // -1: not on the board
  PeerProcesses processes_;
  std::optional<std::int64_t> memory_kills_at_start_ = memory_kills_of_host();
  std::chrono::steady_clock::time_point last_look_;
  std::optional<std::chrono::steady_clock::time_point> gone_since_;
  std::optional<std::chrono::steady_clock::time_point> line_closed_at_;
  std::optional<std::string> death_;
  int dead_rank_ = -1;  // whose death it is
  std::chrono::steady_clock::time_point last_poll_;
  mutable std::mutex announcement_mutex_;    // the two below
  std::optional<std::string> announcement_;  // not sent yet
  std::optional<std::string> announced_;
  std::atomic<bool> has_announced_{false};
};

}  // namespace sidestream::comm

// The notice board of a node: one slot a rank in a shared window, written by its owner, read by all
// with atomics. Ranks meet here without any call into MPI, see how far the others are, and leave a
// message when they fail.
//
// All ranks of the node go through the same meetings in the same order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "comm/shared_window.hpp"

namespace sidestream::comm {

// What a rank wants of an operation, to be compared and used by the others.
struct Stamp {
  Call call;
  Location input;
};

class NodeBoard {
 public:
  explicit NodeBoard(const NodeMeeting& node);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(slots_.size()); }

  // A meeting: arrive once, then ask until everybody has arrived. What a rank wrote before, all can
  // read after.
  void arrive() noexcept;
  bool everyone_arrived() const noexcept;

  // Left before the first meeting of an operation, readable from that meeting on until the next
  // operation's.
  void leave_stamp(const Stamp& stamp) noexcept;
  const Stamp& stamp_of(int local_rank, std::uint64_t sequence) const noexcept;

  // Pieces of work that the ranks of a node share out among themselves. Each rank has a part with
  // pieces 0, 1, 2, ..., given out once a round, to itself or to a rank that has finished its own
  // part. Rounds are numbered alike on all ranks; prepare_round comes before the meeting that opens
  // the round.
  void prepare_round(std::uint64_t round) noexcept;
  std::uint64_t take_piece(std::uint64_t round, int part) noexcept;

  void note_started(std::uint64_t sequence) noexcept;
  std::uint64_t started_by(int local_rank) const noexcept;
  // The same for operations on a device. Callable from any thread.
  void note_device_started(std::uint64_t sequence) noexcept;
  std::uint64_t device_started_by(int local_rank) const noexcept;
  bool is_behind(int local_rank) const noexcept;  // has not arrived where this rank is

  // Signs of life, left by the thread that drives the operations; a rank that computes has one too.
  void note_alive(std::chrono::steady_clock::time_point now) noexcept;
  std::chrono::nanoseconds silent_for(int local_rank) const noexcept;

  // What the rank is busy with, for messages of others: set by its own thread, with the time.
  void note_activity(ranges::Phase phase, std::int64_t step) noexcept;
  // "backward of step 26 for 4.1 s"; empty where it has said nothing.
  std::string activity_of(int local_rank) const;

  // Process numbers of all slots; 0 for this rank, and for those of containers whose numbers mean
  // other processes here.
  std::vector<int> peer_processes() const;
  bool sees_processes_of_all() const;
  // This rank has met the others a last time: its end is none to worry about.
  void note_left() noexcept;
  bool has_left(int local_rank) const noexcept;

  // True for one rank of the node: the first that asks, however often it does. It tells people
  // about the failure.
  bool claim_message() noexcept;

  // Callable from any thread; only the first message of a rank counts.
  void announce_failure(std::string_view message) noexcept;
  std::optional<std::string> failure_of_peer() const;

 private:
  struct Slot;
  bool sees_process_of(const Slot& slot) const noexcept;
  Slot& mine() const noexcept { return *slots_[static_cast<std::size_t>(rank_)]; }

  SharedWindow window_;
  int rank_;
  std::vector<Slot*> slots_;
  std::uint64_t meetings_ = 0;
};

// Of each rank of the job its slot on the board, or -1; board_ranks names the rank of each slot.
std::vector<int> slots_of_ranks(int job_size, std::span<const int> board_ranks);

}  // namespace sidestream::comm

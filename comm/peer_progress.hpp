// How far the ranks are with operations that their host communicators do not see: those on a
// device. What a host communicator offers to the communicator that owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sidestream::comm {

// Callable from any thread; nothing blocks.
class PeerProgress {
 public:
  virtual ~PeerProgress() = default;
  PeerProgress(const PeerProgress&) = delete;
  PeerProgress& operator=(const PeerProgress&) = delete;

  // This rank has come to operation `sequence`, counted from 1.
  virtual void note_started(std::uint64_t sequence) noexcept = 0;

  // Asks the ranks that do not share this node's board: before describe_missing(), with time to
  // answer between. What they answered before is forgotten.
  virtual void ask_everyone() noexcept = 0;
  // The same, but what was answered before stays known until the new answer.
  virtual void ask_again() noexcept = 0;
  // How long answers are waited for; nothing where all share a board.
  virtual std::chrono::milliseconds time_to_answer() const noexcept = 0;

  // Whether this rank is the one that tells people about a failure that it and others have seen for
  // so long. False: ask again.
  virtual bool may_speak(std::chrono::nanoseconds seen_for) noexcept = 0;

  // "rank 1 on node1 (last started operation 3), rank 2 on ... and 5 more": who has not come to it;
  // or that everybody has.
  virtual std::string describe_missing(std::uint64_t sequence) const = 0;

 protected:
  PeerProgress() = default;
};

}  // namespace sidestream::comm

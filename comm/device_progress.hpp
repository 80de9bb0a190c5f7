// PeerProgress over what the ranks of a host communicator share: the node's board, and messages to
// all others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/control_channel.hpp"
#include "comm/node_board.hpp"
#include "comm/peer_progress.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

class DeviceProgress final : public PeerProgress {
 public:
  // Board and channel may be null; board_ranks are the ranks in the job of the board's slots. All
  // outlive this.
  DeviceProgress(const Topology& topology, NodeBoard* board, ControlChannel* channel,
                 const std::vector<int>& board_ranks);

  void note_started(std::uint64_t sequence) noexcept override;
  void ask_everyone() noexcept override;
  void ask_again() noexcept override;
  std::chrono::milliseconds time_to_answer() const noexcept override;
  bool may_speak(std::chrono::nanoseconds seen_for) noexcept override;
  std::string describe_missing(std::uint64_t sequence) const override;

 private:
  std::optional<std::uint64_t> started_by(int rank) const;

  const Topology& topology_;
  NodeBoard* board_;
  ControlChannel* channel_;
  std::vector<int> slot_of_rank_;  // -1: not on the board
};

}  // namespace sidestream::comm

// Which of the ranks that see the same failure tells people about it: one of a node, and nodes
// speak one after another, unless one of them has spoken meanwhile. In the end everybody may.
#pragma once

#include <algorithm>
#include <chrono>

#include "comm/node_board.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

constexpr std::chrono::milliseconds kMessageTurn{250};
constexpr std::chrono::milliseconds kLastMessageTurn{2500};

// How long the ranks of a node leave it to those before them.
inline std::chrono::milliseconds turn_of_node(int node) noexcept {
  return std::min(node * kMessageTurn, kLastMessageTurn);
}

// Of a rank that has seen the failure for so long. Without a board each rank is a node of its own.
// False: ask again. Callable from any thread.
inline bool has_turn(const Topology& topology, NodeBoard* board,
                     std::chrono::nanoseconds seen_for) noexcept {
  if (seen_for >= kLastMessageTurn) return true;
  if (board == nullptr) return seen_for >= turn_of_node(topology.rank);
  return seen_for >= turn_of_node(topology.node) && board->claim_message();
}

}  // namespace sidestream::comm

// Collectives among the ranks of a node over shared windows, and with other nodes through the ranks
// of the same lane.
//
// A buffer that lies in a window on every rank of the node is reduced in place: each piece is read
// from all ranks, added in rank order, and written to all ranks. Other buffers go through a bounce
// window, a chunk at a time, with the same order. Ranks synchronise on the node's board, not
// through MPI.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/mpi_collectives.hpp"
#include "comm/node_board.hpp"
#include "comm/shared_window.hpp"
#include "comm/steps.hpp"

namespace sidestream::comm {

// Ranks in the job, by node and place on the node.
using NodeLayout = std::vector<std::vector<int>>;

class NodeCollectives {
 public:
  // The first window of `windows` is the bounce window. lane: the ranks with this rank's place on
  // all nodes, null when there is one node or this rank has no counterpart on every node.
  NodeCollectives(NodeBoard& board, WindowTable& windows, NodeLayout layout, int node,
                  MpiCollectives* lane);

  // Buffers as in Communicator. The object outlives the steps. Throws CollectiveError inside the
  // steps when the ranks of the node did not call the same thing.
  Steps all_reduce(Call call, std::byte* data);
  Steps reduce_scatter(Call call, const std::byte* input,
                       std::byte* output);  // nodes of equal size only
  Steps all_gather(Call call, const std::byte* input, std::byte* output);  // the same
  Steps agree(Call call);  // a meeting that compares the call; a barrier when there is one node

  bool nodes_are_equal() const;

  static constexpr std::size_t kBounceBytes = std::size_t{4} << 20;

 private:
  // The same region on every rank of the node, in rank order.
  struct Region {
    std::vector<std::byte*> of_rank;
    Region from(std::size_t offset_bytes) const;
    std::vector<const std::byte*> inputs() const;
  };

  void open(const Call& call, const void* input, std::size_t bytes);
  void compare(const Call& call) const;
  bool all_in_windows(const Call& call) const;
  Region stamped(const Call& call) const;
  Region bounce() const;
  int lane_count() const;

  Steps gather_here(Call call, const std::byte* input, std::byte* output);
  Steps gather_through_lane(Call call, const std::byte* input, std::byte* output);
  Steps hand_out(const std::byte* gathered, std::size_t bytes, std::byte* output,
                 std::size_t slice_bytes);
  Steps sum_everywhere(Region region, std::size_t count, core::DType dtype);
  Steps sum_through_lane(Region region, std::size_t count, core::DType dtype);
  Steps sum_slice(Region region, std::size_t stride_bytes, std::byte* output, std::size_t count,
                  core::DType dtype);
  // Every other sum walks backwards: of a buffer larger than the caches they hold the end, which
  // walking forwards again would have replaced by the time it gets there.
  enum class Walk { kForwards, kBackwards };
  bool sum_next_piece(const Region& region, std::size_t count, core::DType dtype, Walk walk);

  NodeBoard& board_;
  WindowTable& windows_;
  NodeLayout layout_;
  std::vector<int> ranks_here_;  // ranks in the job, by place on this node
  MpiCollectives* lane_;
  int local_rank_;
  std::uint64_t round_ = 0;
  Walk next_walk_ = Walk::kForwards;
  std::vector<std::byte> partial_sums_;
  std::vector<std::byte> lane_slices_;
};

}  // namespace sidestream::comm

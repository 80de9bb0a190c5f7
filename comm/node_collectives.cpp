#include "comm/node_collectives.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "comm/reduce.hpp"
#include "comm/slice.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

// Large enough to make the counter cheap, small enough to stay in the second-level cache with all
// its copies.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// Of all nodes together that travels at a time.
constexpr std::size_t kGatheredBytes = NodeCollectives::kBounceBytes / 4;

}  // namespace

NodeCollectives::NodeCollectives(NodeBoard& board, WindowTable& windows, NodeLayout layout,
                                 int node, MpiCollectives* lane)
    : board_(board),
      windows_(windows),
      layout_(std::move(layout)),
      ranks_here_(layout_.at(static_cast<std::size_t>(node))),
      lane_(lane),
      local_rank_(board.rank()) {}

bool NodeCollectives::nodes_are_equal() const {
  return std::all_of(layout_.begin(), layout_.end(),
                     [this](const auto& ranks) { return ranks.size() == layout_.front().size(); });
}

int NodeCollectives::lane_count() const {
  std::size_t smallest = layout_.front().size();
  for (const auto& ranks : layout_) smallest = std::min(smallest, ranks.size());
  return static_cast<int>(smallest);
}

NodeCollectives::Region NodeCollectives::Region::from(std::size_t offset_bytes) const {
  Region moved = *this;
  for (std::byte*& data : moved.of_rank) data += offset_bytes;
  return moved;
}

std::vector<const std::byte*> NodeCollectives::Region::inputs() const {
  return {of_rank.begin(), of_rank.end()};
}

// First thing of every operation; compare() comes after the meeting that this opens.
void NodeCollectives::open(const Call& call, const void* input, std::size_t bytes) {
  board_.leave_stamp({.call = call, .input = windows_.locate(input, bytes)});
  board_.prepare_round(++round_);
  board_.arrive();
}

void NodeCollectives::compare(const Call& call) const {
  for (int peer = 0; peer < board_.size(); ++peer) {
    const Call& theirs = board_.stamp_of(peer, call.sequence).call;
    if (call.agrees_with(theirs)) continue;
    throw core::CollectiveError("this rank calls " + call.arguments() + ", rank " +
                                std::to_string(ranks_here_[static_cast<std::size_t>(peer)]) +
                                " calls " + theirs.arguments() + " as operation " +
                                std::to_string(theirs.sequence) +
                                ": every rank must make the same calls in the same order");
  }
}

bool NodeCollectives::all_in_windows(const Call& call) const {
  for (int peer = 0; peer < board_.size(); ++peer) {
    if (board_.stamp_of(peer, call.sequence).input.window < 0) return false;
  }
  return true;
}

NodeCollectives::Region NodeCollectives::stamped(const Call& call) const {
  Region region;
  for (int peer = 0; peer < board_.size(); ++peer) {
    region.of_rank.push_back(windows_.resolve(board_.stamp_of(peer, call.sequence).input, peer));
  }
  return region;
}

NodeCollectives::Region NodeCollectives::bounce() const {
  Region region;
  for (int peer = 0; peer < board_.size(); ++peer)
    region.of_rank.push_back(windows_.resolve({.window = 0}, peer));
  return region;
}

Steps NodeCollectives::agree(Call call) {
  open(call, nullptr, 0);
  co_await until([this] { return board_.everyone_arrived(); });
  compare(call);
}

Steps NodeCollectives::all_reduce(Call call, std::byte* data) {
  const auto everyone = [this] { return board_.everyone_arrived(); };
  const std::size_t element_bytes = core::size_of(call.dtype);
  open(call, data, call.count * element_bytes);
  co_await until(everyone);
  compare(call);
  if (all_in_windows(call)) {
    Steps sum = sum_everywhere(stamped(call), call.count, call.dtype);
    co_await all_finished(sum);
    board_.arrive();
    co_await until(everyone);
    co_return;
  }
  const Region region = bounce();
  std::byte* own = region.of_rank[static_cast<std::size_t>(local_rank_)];
  const std::size_t chunk_count = kBounceBytes / element_bytes;
  for (std::size_t at = 0; at < call.count; at += chunk_count) {
    const std::size_t count = std::min(chunk_count, call.count - at);
    std::memcpy(own, data + at * element_bytes, count * element_bytes);
    board_.prepare_round(++round_);
    board_.arrive();
    co_await until(everyone);
    Steps sum = sum_everywhere(region, count, call.dtype);
    co_await all_finished(sum);
    board_.arrive();
    co_await until(everyone);
    std::memcpy(data + at * element_bytes, own, count * element_bytes);
  }
}

Steps NodeCollectives::sum_everywhere(Region region, std::size_t count, core::DType dtype) {
  if (layout_.size() == 1) {
    const Walk walk = next_walk_;
    next_walk_ = walk == Walk::kForwards ? Walk::kBackwards : Walk::kForwards;
    while (sum_next_piece(region, count, dtype, walk)) co_await give_way();
    co_return;
  }
  Steps through_lane = sum_through_lane(region, count, dtype);
  co_await all_finished(through_lane);
}

// Every rank starts with its own part, which its caches know from the last time. A rank whose core
// is busy with its own computation is helped by those that are done.
bool NodeCollectives::sum_next_piece(const Region& region, std::size_t count, core::DType dtype,
                                     Walk walk) {
  const std::size_t element_bytes = core::size_of(dtype);
  const std::size_t piece_count = kPieceBytes / element_bytes;
  const Slicing parts(count, board_.size());
  for (int step = 0; step < board_.size(); ++step) {
    const int part = (local_rank_ + step) % board_.size();
    const Slice slice = parts.of(part);
    const std::size_t pieces = (slice.count + piece_count - 1) / piece_count;
    const std::size_t taken = board_.take_piece(round_, part);
    if (taken >= pieces) continue;
    const std::size_t begin = (walk == Walk::kBackwards ? pieces - 1 - taken : taken) * piece_count;
    const Region piece = region.from((slice.begin + begin) * element_bytes);
    sum_in_order(piece.inputs(), piece.of_rank, std::min(piece_count, slice.count - begin), dtype);
    return true;
  }
  return false;
}

// Several nodes: this rank adds its slice over the node, its lane adds it over the nodes, this rank
// hands it out; part by part, so that the cable has work meanwhile.
Steps NodeCollectives::sum_through_lane(Region region, std::size_t count, core::DType dtype) {
  if (lane_ == nullptr) co_return;
  const std::size_t element_bytes = core::size_of(dtype);
  const Slice slice = Slicing(count, lane_count()).of(local_rank_);
  const Region mine = region.from(slice.begin * element_bytes);
  std::byte* own = mine.of_rank[static_cast<std::size_t>(local_rank_)];
  const auto add = [=](std::size_t begin, std::size_t part) {
    const Region region_of_part = mine.from(begin * element_bytes);
    std::byte* sum = own + begin * element_bytes;
    sum_in_order(region_of_part.inputs(), {&sum, 1}, part, dtype);
  };
  const auto hand_out = [=](std::size_t begin, std::size_t part) {
    const std::size_t offset = begin * element_bytes;
    for (std::byte* peer : mine.of_rank) {
      if (peer != own) std::memcpy(peer + offset, own + offset, part * element_bytes);
    }
  };
  Steps across = lane_->all_reduce(own, slice.count, dtype, {.before = add, .after = hand_out});
  co_await all_finished(across);
}

Steps NodeCollectives::reduce_scatter(Call call, const std::byte* input, std::byte* output) {
  const auto everyone = [this] { return board_.everyone_arrived(); };
  const std::size_t element_bytes = core::size_of(call.dtype);
  const std::size_t slice_bytes = call.count * element_bytes;
  const std::size_t ranks = layout_.size() * layout_.front().size();
  open(call, input, ranks * slice_bytes);
  co_await until(everyone);
  compare(call);
  if (all_in_windows(call)) {
    Steps sum = sum_slice(stamped(call), slice_bytes, output, call.count, call.dtype);
    co_await all_finished(sum);
    board_.arrive();
    co_await until(everyone);
    co_return;
  }
  const Region region = bounce();
  std::byte* own = region.of_rank[static_cast<std::size_t>(local_rank_)];
  const std::size_t chunk_count = kBounceBytes / element_bytes / ranks;
  for (std::size_t at = 0; at < call.count; at += chunk_count) {
    const std::size_t count = std::min(chunk_count, call.count - at);
    for (std::size_t r = 0; r < ranks; ++r) {
      std::memcpy(own + r * count * element_bytes, input + r * slice_bytes + at * element_bytes,
                  count * element_bytes);
    }
    board_.arrive();
    co_await until(everyone);
    Steps sum =
        sum_slice(region, count * element_bytes, output + at * element_bytes, count, call.dtype);
    co_await all_finished(sum);
    board_.arrive();
    co_await until(everyone);
  }
}

// region: one slice a rank of the job, stride_bytes apart. Adds this rank's slice over all ranks.
Steps NodeCollectives::sum_slice(Region region, std::size_t stride_bytes, std::byte* output,
                                 std::size_t count, core::DType dtype) {
  const auto place = static_cast<std::size_t>(local_rank_);
  const std::size_t element_bytes = core::size_of(dtype);
  const auto sum_for = [&](int rank, std::size_t begin, std::size_t part, std::byte* result) {
    const std::size_t offset = static_cast<std::size_t>(rank) * stride_bytes;
    sum_in_order(region.from(offset + begin * element_bytes).inputs(), {&result, 1}, part, dtype);
  };
  if (layout_.size() == 1) {
    const std::size_t piece_count = kPieceBytes / element_bytes;
    for (std::size_t at = 0; at < count; at += piece_count) {
      sum_for(layout_[0][place], at, std::min(piece_count, count - at),
              output + at * element_bytes);
      co_await give_way();
    }
    co_return;
  }
  const std::size_t bytes = count * element_bytes;
  partial_sums_.resize(std::max(partial_sums_.size(), layout_.size() * bytes));
  const auto add = [&](std::size_t begin, std::size_t part) {
    for (std::size_t node = 0; node < layout_.size(); ++node)
      sum_for(layout_[node][place], begin, part,
              partial_sums_.data() + node * bytes + begin * element_bytes);
  };
  Steps across = lane_->reduce_scatter(partial_sums_.data(), output, count, dtype, {.before = add});
  co_await all_finished(across);
}

Steps NodeCollectives::all_gather(Call call, const std::byte* input, std::byte* output) {
  return layout_.size() == 1 ? gather_here(call, input, output)
                             : gather_through_lane(call, input, output);
}

// Several nodes: each slice crosses to another node once, to the rank with the same place there,
// which hands it out; part by part, so that one travels while another is handed out.
Steps NodeCollectives::gather_through_lane(Call call, const std::byte* input, std::byte* output) {
  const std::size_t slice_bytes = call.count * core::size_of(call.dtype);
  const std::size_t nodes = layout_.size();
  const std::size_t part_bytes = kGatheredBytes / nodes;
  open(call, input, slice_bytes);
  co_await until([this] { return board_.everyone_arrived(); });
  compare(call);
  lane_slices_.resize(2 * nodes * part_bytes);
  const auto place_of = [&](std::size_t at) {  // of one part while the next arrives
    return lane_slices_.data() + at / part_bytes % 2 * nodes * part_bytes;
  };
  const auto receive = [&](std::size_t at) {
    return at < slice_bytes
               ? lane_->all_gather(input + at, place_of(at), std::min(part_bytes, slice_bytes - at))
               : Steps();
  };
  Steps arriving = receive(0);
  co_await all_finished(arriving);
  for (std::size_t at = 0; at < slice_bytes; at += part_bytes) {
    Steps next = receive(at + part_bytes);
    Steps handed =
        hand_out(place_of(at), std::min(part_bytes, slice_bytes - at), output + at, slice_bytes);
    co_await all_finished(next, handed);
  }
}

// gathered: `bytes` of this place's rank on every node. output: those of all ranks, slice_bytes
// apart.
Steps NodeCollectives::hand_out(const std::byte* gathered, std::size_t bytes, std::byte* output,
                                std::size_t slice_bytes) {
  const auto everyone = [this] { return board_.everyone_arrived(); };
  const Region region = bounce();
  std::memcpy(region.of_rank[static_cast<std::size_t>(local_rank_)], gathered,
              layout_.size() * bytes);
  board_.arrive();
  co_await until(everyone);
  for (std::size_t peer = 0; peer < region.of_rank.size(); ++peer) {
    for (std::size_t node = 0; node < layout_.size(); ++node) {
      const auto rank = static_cast<std::size_t>(layout_[node][peer]);
      std::memcpy(output + rank * slice_bytes, region.of_rank[peer] + node * bytes, bytes);
    }
  }
  board_.arrive();
  co_await until(everyone);
}

Steps NodeCollectives::gather_here(Call call, const std::byte* input, std::byte* output) {
  const auto everyone = [this] { return board_.everyone_arrived(); };
  const std::size_t slice_bytes = call.count * core::size_of(call.dtype);
  const auto copy_from = [&](const Region& region, std::size_t at, std::size_t bytes) {
    for (std::size_t peer = 0; peer < region.of_rank.size(); ++peer) {
      std::byte* to = output + peer * slice_bytes + at;
      if (to != region.of_rank[peer]) std::memcpy(to, region.of_rank[peer], bytes);
    }
  };
  open(call, input, slice_bytes);
  co_await until(everyone);
  compare(call);
  if (all_in_windows(call)) {
    copy_from(stamped(call), 0, slice_bytes);
    board_.arrive();
    co_await until(everyone);
    co_return;
  }
  const Region region = bounce();
  for (std::size_t at = 0; at < slice_bytes; at += kBounceBytes) {
    const std::size_t bytes = std::min(kBounceBytes, slice_bytes - at);
    std::memcpy(region.of_rank[static_cast<std::size_t>(local_rank_)], input + at, bytes);
    board_.arrive();
    co_await until(everyone);
    copy_from(region, at, bytes);
    board_.arrive();
    co_await until(everyone);
  }
}

}  // namespace sidestream::comm

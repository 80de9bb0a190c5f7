#include "comm/peer_watch.hpp"

#include <utility>

namespace sidestream::comm {
namespace {

// A process that runs leaves a sign of life every few milliseconds; a starved one may take longer.
constexpr std::chrono::milliseconds kLongSilence{400};

}  // namespace

PeerWatch::PeerWatch(const Topology& topology, NodeBoard* board, ControlChannel* channel,
                     std::vector<int> board_ranks)
    : topology_(topology),
      board_(board),
      channel_(channel),
      slot_of_rank_(slots_of_ranks(topology.size, board_ranks)) {}

void PeerWatch::note_started(std::uint64_t sequence) {
  if (board_ != nullptr) board_->note_started(sequence);
  if (channel_ != nullptr) channel_->note_started(sequence);
}

void PeerWatch::poll() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < std::chrono::milliseconds(1)) return;
  last_poll_ = now;
  if (board_ != nullptr) board_->note_alive(now);
  if (channel_ == nullptr) return;
  send_announcement();
  channel_->poll();
}

void PeerWatch::send_announcement() {
  if (channel_ == nullptr) return;
  std::optional<std::string> message;
  {
    const std::lock_guard lock(announcement_mutex_);
    message = std::exchange(announcement_, std::nullopt);
  }
  if (message) channel_->announce_failure(*message);
}

void PeerWatch::flush_announcement(std::chrono::milliseconds limit) noexcept {
  if (channel_ == nullptr) return;
  try {
    const auto end = std::chrono::steady_clock::now() + limit;
    send_announcement();
    while (!channel_->all_sent() && std::chrono::steady_clock::now() < end) channel_->poll();
  } catch (...) {  // the peers run into their deadline instead
  }
}

std::optional<std::string> PeerWatch::failure_of_peer() const {
  std::optional<std::string> failure;
  if (board_ != nullptr) failure = board_->failure_of_peer();
  if (!failure && channel_ != nullptr) failure = channel_->failure_of_peer();
  return failure;
}

void PeerWatch::ask_everyone() {
  if (channel_ != nullptr) channel_->ask_everyone();
}

void PeerWatch::announce_failure(std::string_view message) noexcept {
  if (board_ != nullptr) board_->announce_failure(message);
  if (channel_ == nullptr) return;
  try {
    const std::lock_guard lock(announcement_mutex_);
    if (!announcement_) announcement_ = message;
  } catch (...) {  // no memory for a message: the peers run into their deadline instead
  }
}

void PeerWatch::describe_rank(int rank, std::uint64_t sequence, std::string& text) const {
  const int slot = slot_of_rank_[static_cast<std::size_t>(rank)];
  std::optional<std::uint64_t> started;
  if (slot >= 0) started = board_->started_by(slot);
  if (slot < 0 && channel_ != nullptr) started = channel_->started_by(rank);
  const bool stuck =
      slot >= 0 && (board_->is_behind(slot) || board_->silent_for(slot) > kLongSilence);
  if (started && *started >= sequence && !stuck) return;

  const std::string name = topology_.place_of(static_cast<std::size_t>(rank));
  if (!text.empty()) text += ", ";
  if (!started) {
    text += name + " (gives no sign of life)";
  } else if (*started >= sequence) {
    text += name + " (has started it and got stuck)";
  } else {
    text += name + " (last started operation " + std::to_string(*started) + ")";
  }
}

std::string PeerWatch::describe_missing(std::uint64_t sequence) const {
  std::string text;
  for (int rank = 0; rank < topology_.size; ++rank) {
    if (rank != topology_.rank) describe_rank(rank, sequence, text);
  }
  return text.empty() ? "nobody: every rank has started it, and it was too slow" : text;
}

}  // namespace sidestream::comm

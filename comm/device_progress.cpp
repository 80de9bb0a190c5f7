#include "comm/device_progress.hpp"

#include "comm/message_turn.hpp"
#include "comm/missing_ranks.hpp"

namespace sidestream::comm {

DeviceProgress::DeviceProgress(const Topology& topology, NodeBoard* board, ControlChannel* channel,
                               const std::vector<int>& board_ranks)
    : topology_(topology),
      board_(board),
      channel_(channel),
      slot_of_rank_(slots_of_ranks(topology.size, board_ranks)) {}

void DeviceProgress::note_started(std::uint64_t sequence) noexcept {
  if (board_ != nullptr) board_->note_device_started(sequence);
  if (channel_ != nullptr) channel_->note_device_started(sequence);
}

void DeviceProgress::ask_everyone() noexcept {
  if (channel_ != nullptr) channel_->ask_everyone_with_next_poll();
}

void DeviceProgress::ask_again() noexcept {
  if (channel_ != nullptr) channel_->ask_again_with_next_poll();
}

std::chrono::milliseconds DeviceProgress::time_to_answer() const noexcept {
  return channel_ != nullptr ? ControlChannel::kTimeToAnswer : std::chrono::milliseconds{0};
}

bool DeviceProgress::may_speak(std::chrono::nanoseconds seen_for) noexcept {
  return has_turn(topology_, board_, seen_for);
}

std::optional<std::uint64_t> DeviceProgress::started_by(int rank) const {
  const int slot = slot_of_rank_[static_cast<std::size_t>(rank)];
  if (slot >= 0) return board_->device_started_by(slot);
  return channel_ == nullptr ? std::nullopt : channel_->device_started_by(rank);
}

std::string DeviceProgress::describe_missing(std::uint64_t sequence) const {
  MissingRanks missing;
  for (int rank = 0; rank < topology_.size; ++rank) {
    if (rank == topology_.rank) continue;
    const auto started = started_by(rank);
    if (started && *started >= sequence) continue;
    missing.add(topology_.place_of(static_cast<std::size_t>(rank)) +
                (started ? " (last started operation " + std::to_string(*started) + ")"
                         : " (gives no sign of life)"));
  }
  const std::string text = missing.text();
  return text.empty() ? "nobody: every rank has started it; a GPU or the network between GPUs is "
                        "stuck"
                      : text;
}

}  // namespace sidestream::comm

#include "comm/peer_watch.hpp"

#include <utility>

#include "comm/message_turn.hpp"
#include "comm/missing_ranks.hpp"
#include "comm/seconds_text.hpp"

namespace sidestream::comm {
namespace {

// A process that runs leaves a sign of life every few milliseconds; a starved one may take longer.
constexpr std::chrono::milliseconds kLongSilence{400};

constexpr std::chrono::milliseconds kBetweenLooksForTheDead{100};
// The launcher takes the end of its children at once, unless it is busy.
constexpr std::chrono::milliseconds kLauncherTakesAnEnd{300};

}  // namespace

PeerWatch::PeerWatch(const Topology& topology, const Sources& sources, std::vector<int> board_ranks)
    : topology_(topology),
      board_(sources.board),
      channel_(sources.channel),
      lines_(sources.lines),
      slot_of_rank_(slots_of_ranks(topology.size, board_ranks)),
      processes_(board_ == nullptr ? std::vector<int>() : board_->peer_processes()) {}

void PeerWatch::note_started(std::uint64_t sequence) {
  if (board_ != nullptr) board_->note_started(sequence);
  if (channel_ != nullptr) channel_->note_started(sequence);
}

void PeerWatch::poll() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < std::chrono::milliseconds(1)) return;
  last_poll_ = now;
  if (board_ != nullptr) board_->note_alive(now);
  look_for_the_dead(now);
  if (channel_ == nullptr) return;
  send_announcement();
  channel_->poll();
}

void PeerWatch::look_for_the_dead(std::chrono::steady_clock::time_point now) {
  if (death_ || now - last_look_ < kBetweenLooksForTheDead) return;
  last_look_ = now;
  if (board_ != nullptr) look_on_this_node(now);
  if (lines_ != nullptr) look_at_lines(now);
}

void PeerWatch::look_on_this_node(std::chrono::steady_clock::time_point now) {
  const std::optional<int> slot = processes_.first_gone();
  if (!slot || board_->has_left(*slot)) return;
  if (!gone_since_) gone_since_ = now;
  const ProcessEnd end = processes_.end_of(*slot);
  if (end.how == ProcessEnd::How::kUnknown && now - *gone_since_ < kLauncherTakesAnEnd) return;
  for (int rank = 0; rank < topology_.size; ++rank) {
    if (slot_of_rank_[static_cast<std::size_t>(rank)] == *slot)
      note_death(rank, text_of(end, memory_kills()), board_->activity_of(*slot));
  }
}

std::optional<std::int64_t> PeerWatch::memory_kills() const noexcept {
  const std::optional<std::int64_t> now = memory_kills_of_host();
  if (!now || !memory_kills_at_start_) return std::nullopt;
  return *now - *memory_kills_at_start_;
}

// A rank that ended after a failure has sent its message on another way: that may come first. And
// one node after another, so that one of them tells it.
void PeerWatch::look_at_lines(std::chrono::steady_clock::time_point now) {
  const std::optional<int> rank = lines_->first_gone();
  if (!rank || death_) return;
  if (!line_closed_at_) line_closed_at_ = now;
  if (now - *line_closed_at_ >= kMessageTurn + turn_of_node(topology_.node))
    note_death(*rank,
               "its connection was closed without a goodbye; the log of its host may say why", "");
}

void PeerWatch::note_death(int rank, const std::string& how, const std::string& activity) {
  dead_rank_ = rank;
  death_ = topology_.place_of(static_cast<std::size_t>(rank)) + " has died: its process is gone (" +
           how + ")" + (activity.empty() ? "" : "; it was in " + activity);
}

void PeerWatch::note_left() noexcept {
  if (board_ != nullptr) board_->note_left();
  if (lines_ != nullptr) lines_->say_goodbye();
}

bool PeerWatch::may_speak(std::chrono::steady_clock::time_point since) noexcept {
  return has_turn(topology_, board_, std::chrono::steady_clock::now() - since);
}

void PeerWatch::send_announcement() {
  if (channel_ == nullptr) return;
  std::optional<std::string> message;
  {
    const std::lock_guard lock(announcement_mutex_);
    message = std::exchange(announcement_, std::nullopt);
  }
  if (message) channel_->announce_failure(*message, dead_rank_);
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

void PeerWatch::ask_again() {
  if (channel_ != nullptr) channel_->ask_again();
}

std::chrono::milliseconds PeerWatch::time_to_answer() const noexcept {
  return channel_ != nullptr ? ControlChannel::kTimeToAnswer : std::chrono::milliseconds{0};
}

void PeerWatch::announce_failure(std::string_view message) noexcept {
  if (board_ != nullptr) board_->announce_failure(message);
  queue(message);
  try {
    const std::lock_guard lock(announcement_mutex_);
    if (!announced_) announced_ = message;
  } catch (...) {  // no memory for a copy: what is in flight here runs into its deadline
    return;
  }
  has_announced_.store(true);
}

void PeerWatch::announce_death(std::string_view message) noexcept { queue(message); }

void PeerWatch::queue(std::string_view message) noexcept {
  if (channel_ == nullptr) return;
  try {
    const std::lock_guard lock(announcement_mutex_);
    if (!announcement_) announcement_ = message;
  } catch (...) {  // no memory for a message: the peers run into their deadline instead
  }
}

std::optional<std::string> PeerWatch::announced() const {
  if (!has_announced_.load()) return std::nullopt;
  const std::lock_guard lock(announcement_mutex_);
  return announced_;
}

std::string PeerWatch::description_of(int rank, std::uint64_t sequence) const {
  const int slot = slot_of_rank_[static_cast<std::size_t>(rank)];
  std::optional<std::uint64_t> started;
  if (slot >= 0) started = board_->started_by(slot);
  if (slot < 0 && channel_ != nullptr) started = channel_->started_by(rank);
  const bool stuck =
      slot >= 0 && (board_->is_behind(slot) || board_->silent_for(slot) > kLongSilence);
  if (started && *started >= sequence && !stuck) return {};

  std::string text = topology_.place_of(static_cast<std::size_t>(rank));
  if (!started) {
    text += " (gives no sign of life)";
  } else if (*started >= sequence) {
    text += " (has started it and got stuck)";
  } else {
    text += " (last started operation " + std::to_string(*started) + ")";
  }
  return slot >= 0 ? text + silence_of(slot) : text;
}

// What its thread was busy with, and whether the process does anything at all.
std::string PeerWatch::silence_of(int slot) const {
  const std::string activity = board_->activity_of(slot);
  std::string text = activity.empty() ? "" : ", in " + activity;
  const auto silent = board_->silent_for(slot);
  if (silent > kLongSilence)
    text += ", silent for " + seconds_text(silent) + ": stopped or starved";
  return text;
}

std::string PeerWatch::describe_missing(std::uint64_t sequence) const {
  MissingRanks missing;
  for (int rank = 0; rank < topology_.size; ++rank) {
    if (rank == topology_.rank) continue;
    const std::string description = description_of(rank, sequence);
    if (!description.empty()) missing.add(description);
  }
  const std::string text = missing.text();
  return text.empty() ? "nobody: every rank has started it, and it was too slow, or "
                        "ranks have started different ones (--check-collectives on finds them)"
                      : text;
}

}  // namespace sidestream::comm

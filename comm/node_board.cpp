#include "comm/node_board.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "comm/seconds_text.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::comm {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMessageBytes = 1500;

// A word, so that nobody reads half of it.
std::uint64_t packed(ranges::Phase phase, std::int64_t step) noexcept {
  return (static_cast<std::uint64_t>(step) << 8) | (static_cast<std::uint64_t>(phase) + 1);
}

// The namespace that this process's number is of: another container has numbers of its own. 0 where
// the system does not say (namespaces(7)).
std::uint64_t process_namespace() noexcept {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

enum FailureState : std::uint32_t { kNone, kBeingWritten, kWritten };

}  // namespace

// Each counter has its own cache line: a waiting rank reads it over and over.
struct NodeBoard::Slot {
  alignas(kLineBytes) std::atomic<std::uint64_t> meetings;
  alignas(kLineBytes) std::atomic<std::uint64_t> started;
  alignas(kLineBytes) std::atomic<std::uint64_t> device_started;
  alignas(kLineBytes) std::array<std::atomic<std::uint64_t>, 2> next_piece;
  alignas(kLineBytes) std::atomic<std::int64_t> alive_at_ns;  // the clock is the same for the node
  alignas(kLineBytes) std::atomic<std::uint32_t> failures;    // used in the first rank's slot
  alignas(kLineBytes) std::array<Stamp, 2> stamps;
  std::atomic<std::uint64_t> activity;  // step and phase, see packed(); 0: none
  std::atomic<std::int64_t> activity_since_ns;
  std::atomic<std::int32_t> process;
  std::atomic<std::uint64_t> process_namespace;
  std::atomic<bool> left;
  std::atomic<std::int32_t> speaker;  // used in the first rank's slot: its place + 1
  std::atomic<std::uint32_t> failure_state;
  std::array<char, kMessageBytes> message;
};

NodeBoard::NodeBoard(const NodeMeeting& node) : window_(node, sizeof(Slot)), rank_(node.rank) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
                "counters are shared between processes");
  Slot* const own = new (window_.segment(rank_)) Slot{};
  own->process.store(::getpid());
  own->process_namespace.store(process_namespace());
  for (int peer = 0; peer < node.size; ++peer) {
    slots_.push_back(std::launder(reinterpret_cast<Slot*>(window_.segment(peer))));
  }
  node.exchange("board");  // all slots are there
}

void NodeBoard::arrive() noexcept { mine().meetings.store(++meetings_, std::memory_order_release); }

bool NodeBoard::is_behind(int local_rank) const noexcept {
  return slots_[static_cast<std::size_t>(local_rank)]->meetings.load(std::memory_order_acquire) <
         meetings_;
}

bool NodeBoard::everyone_arrived() const noexcept {
  for (int peer = 0; peer < size(); ++peer) {
    if (is_behind(peer)) return false;
  }
  return true;
}

// Two stamps, by turns: a rank that is already at the next operation must not overwrite what a
// slower one still reads.
void NodeBoard::leave_stamp(const Stamp& stamp) noexcept {
  mine().stamps[stamp.call.sequence % 2] = stamp;
}

const Stamp& NodeBoard::stamp_of(int local_rank, std::uint64_t sequence) const noexcept {
  return slots_[static_cast<std::size_t>(local_rank)]->stamps[sequence % 2];
}

void NodeBoard::prepare_round(std::uint64_t round) noexcept {
  // Everybody has left round - 2, whose counter this is: they have met at the end of round - 1.
  mine().next_piece[round % 2].store(0, std::memory_order_relaxed);
}

std::uint64_t NodeBoard::take_piece(std::uint64_t round, int part) noexcept {
  Slot& slot = *slots_[static_cast<std::size_t>(part)];
  return slot.next_piece[round % 2].fetch_add(1, std::memory_order_relaxed);
}

void NodeBoard::note_started(std::uint64_t sequence) noexcept {
  mine().started.store(sequence, std::memory_order_release);
}

std::uint64_t NodeBoard::started_by(int local_rank) const noexcept {
  return slots_[static_cast<std::size_t>(local_rank)]->started.load(std::memory_order_acquire);
}

void NodeBoard::note_alive(std::chrono::steady_clock::time_point now) noexcept {
  mine().alive_at_ns.store(std::chrono::nanoseconds(now.time_since_epoch()).count(),
                           std::memory_order_relaxed);
}

std::chrono::nanoseconds NodeBoard::silent_for(int local_rank) const noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const Slot& slot = *slots_[static_cast<std::size_t>(local_rank)];
  return now - std::chrono::nanoseconds(slot.alive_at_ns.load(std::memory_order_relaxed));
}

void NodeBoard::note_device_started(std::uint64_t sequence) noexcept {
  mine().device_started.store(sequence, std::memory_order_release);
}

std::uint64_t NodeBoard::device_started_by(int local_rank) const noexcept {
  return slots_[static_cast<std::size_t>(local_rank)]->device_started.load(
      std::memory_order_acquire);
}

void NodeBoard::note_activity(ranges::Phase phase, std::int64_t step) noexcept {
  mine().activity_since_ns.store(record::monotonic_ns(), std::memory_order_relaxed);
  mine().activity.store(packed(phase, step), std::memory_order_release);
}

std::string NodeBoard::activity_of(int local_rank) const {
  const Slot& slot = *slots_[static_cast<std::size_t>(local_rank)];
  const std::uint64_t word = slot.activity.load(std::memory_order_acquire);
  const std::uint64_t phase = (word & 0xFF) - 1;
  if (word == 0 || phase >= ranges::kPhaseCount) return {};
  const auto since_ns =
      record::monotonic_ns() - slot.activity_since_ns.load(std::memory_order_relaxed);
  const std::string where = word >> 8 == 0 ? "the set-up" : "step " + std::to_string(word >> 8);
  return std::string(ranges::name_of(static_cast<ranges::Phase>(phase))) + " of " + where +
         " for " + seconds_text(std::chrono::nanoseconds(std::max<std::int64_t>(0, since_ns)));
}

bool NodeBoard::sees_process_of(const Slot& slot) const noexcept {
  const std::uint64_t own = mine().process_namespace.load();
  return own != 0 && slot.process_namespace.load() == own;
}

bool NodeBoard::sees_processes_of_all() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [this](const Slot* slot) { return sees_process_of(*slot); });
}

std::vector<int> NodeBoard::peer_processes() const {
  std::vector<int> processes;
  for (const Slot* slot : slots_)
    processes.push_back(slot != &mine() && sees_process_of(*slot) ? slot->process.load() : 0);
  return processes;
}

void NodeBoard::note_left() noexcept { mine().left.store(true, std::memory_order_release); }

bool NodeBoard::has_left(int local_rank) const noexcept {
  return slots_[static_cast<std::size_t>(local_rank)]->left.load(std::memory_order_acquire);
}

bool NodeBoard::claim_message() noexcept {
  std::int32_t speaker = 0;
  slots_[0]->speaker.compare_exchange_strong(speaker, rank_ + 1);
  return speaker == 0 || speaker == rank_ + 1;
}

void NodeBoard::announce_failure(std::string_view message) noexcept {
  Slot& slot = mine();
  std::uint32_t expected = kNone;
  if (!slot.failure_state.compare_exchange_strong(expected, kBeingWritten)) return;
  const std::size_t length = std::min(message.size(), kMessageBytes - 1);
  std::memcpy(slot.message.data(), message.data(), length);
  slot.message[length] = '\0';
  slot.failure_state.store(kWritten, std::memory_order_release);
  slots_[0]->failures.fetch_add(1, std::memory_order_release);
}

std::optional<std::string> NodeBoard::failure_of_peer() const {
  if (slots_[0]->failures.load(std::memory_order_acquire) == 0) return std::nullopt;
  for (int peer = 0; peer < size(); ++peer) {
    const Slot& slot = *slots_[static_cast<std::size_t>(peer)];
    if (peer != rank_ && slot.failure_state.load(std::memory_order_acquire) == kWritten)
      return slot.message.data();
  }
  return std::nullopt;
}

std::vector<int> slots_of_ranks(int job_size, std::span<const int> board_ranks) {
  std::vector<int> slots(static_cast<std::size_t>(job_size), -1);
  for (std::size_t slot = 0; slot < board_ranks.size(); ++slot) {
    slots[static_cast<std::size_t>(board_ranks[slot])] = static_cast<int>(slot);
  }
  return slots;
}

}  // namespace sidestream::comm

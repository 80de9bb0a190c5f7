#include "profiling/record/recorder.hpp"

#include <algorithm>
#include <bit>
#include <fstream>
#include <utility>

#include "profiling/record/recording_cut.hpp"
#include "profiling/record/thread_log.hpp"

namespace sidestream::record {
namespace {

// What a thread remembers of the recorder that it last told something.
struct Remembered {
  std::uint64_t recorder = 0;
  std::shared_ptr<ThreadLog> log = nullptr;
  ~Remembered() {
    if (log) log->thread_has_ended.store(true, std::memory_order_release);
  }
};
thread_local Remembered remembered;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string name_of_thread(std::int64_t thread_id) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread_id) + "/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "thread" : name;
}

RangeRecord range_from(NameId name, const ranges::CollectivePayload* payload) noexcept {
  RangeRecord range;
  range.name = name;
  range.has_payload = payload != nullptr;
  if (payload != nullptr) range.payload = *payload;
  range.start_ns = monotonic_ns();
  return range;
}

// With nothing left the ring ran over while it was read.
void note_lost(const RangeRing::Taken& taken, Recording& recording) {
  if (taken.dropped == 0) return;
  recording.dropped += taken.dropped;
  recording.room_needed = std::max<std::uint64_t>(
      recording.room_needed, Recorder::room_for(taken.dropped + taken.records.size()));
  recording.complete_from_ns =
      std::max(recording.complete_from_ns.value_or(0),
               taken.complete_from_ns.value_or(recording.end.monotonic_ns));
}

bool is_communication(NameId name) {
  return is_phase(name) && category_of(name) == ranges::Category::kCommunication;
}

bool is_collective(NameId name) { return is_phase(name) && ranges::is_collective(phase_of(name)); }

}  // namespace

Recorder::Recorder(const RecorderConfig& config)
    : most_threads_(config.most_threads),
      ranges_per_thread_(std::bit_ceil(config.ranges_per_thread)),
      number_(next_number()),
      last_take_(read_clocks()) {}

Recorder::~Recorder() = default;

void Recorder::make_room_for(std::size_t ranges_per_thread) noexcept {
  ranges_per_thread_.store(std::bit_ceil(ranges_per_thread), std::memory_order_relaxed);
}

std::size_t Recorder::room_for(std::uint64_t ranges) noexcept { return std::bit_ceil(ranges + 1); }

void Recorder::keep(Keeping keeping) noexcept {
  const std::lock_guard lock(mutex_);
  if (keeping_ == Keeping::kOff && keeping != Keeping::kOff) {
    last_take_ = read_clocks();
    dropped_before_ = dropped_.load(std::memory_order_relaxed) + flights_.lost();
  }
  keeping_ = keeping;
  keeps_.store(keeping == Keeping::kOn, std::memory_order_relaxed);
}

ThreadLog* Recorder::log_of_this_thread() noexcept {
  if (remembered.recorder == number_) return remembered.log.get();
  return new_log();
}

ThreadLog* Recorder::new_log() noexcept {
  std::shared_ptr<ThreadLog> log;
  try {
    const std::lock_guard lock(mutex_);
    if (logs_.size() < most_threads_) {
      log = std::make_shared<ThreadLog>();
      logs_.push_back(log);
    }
  } catch (const std::bad_alloc&) {
    log = nullptr;  // its ranges are counted as dropped
  }
  if (remembered.log) remembered.log->thread_has_ended.store(true, std::memory_order_release);
  remembered.recorder = number_;
  remembered.log = std::move(log);
  return remembered.log.get();
}

void Recorder::push(NameId name, const ranges::CollectivePayload* payload) noexcept {
  ThreadLog* const log = log_of_this_thread();
  if (log == nullptr) return;
  const RangeRecord range = range_from(name, payload);
  log->open.push(range);
  if (!is_step(name)) return;
  step_.store(step_of(name), std::memory_order_relaxed);
  account_.begin_step(range.start_ns, step_of(name));
}

void Recorder::pop() noexcept {
  ThreadLog* const log = log_of_this_thread();
  const std::int64_t now = monotonic_ns();
  if (log == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::optional<RangeRecord> range = log->open.top();
  if (range) {
    range->end_ns = now;
    if (keeps()) keep_range(log, *range);  // before it closes: a take in between finds it twice
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  log->open.pop();
  if (range) tell_account(*log, *range);
}

void Recorder::keep_range(ThreadLog* log, const RangeRecord& range) noexcept {
  const std::size_t room = ranges_per_thread_.load(std::memory_order_relaxed);
  if (log == nullptr || !log->keep(range, room)) dropped_.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::tell_account(ThreadLog& log, const RangeRecord& range) noexcept {
  if (is_step(range.name)) {
    // One that an exception ends is no step: it waited for what never came.
    if (std::uncaught_exceptions() == 0) account_.end_step(range.end_ns);
  } else if (is_communication(range.name)) {  // its thread waits and does nothing else
    if (is_collective(range.name)) account_.add_collective(range.start_ns, range.end_ns);
    if (is_step(log.open.outermost())) account_.add_wait(range.start_ns, range.end_ns);
  } else if (is_phase(range.name) && is_step(log.open.innermost())) {
    account_.add_phase(phase_of(range.name), range.start_ns, range.end_ns);
  }
}

std::uint64_t Recorder::start(NameId name, const ranges::CollectivePayload* payload) noexcept {
  RangeRecord range = range_from(name, payload);
  range.in_flight = true;
  return flights_.start(range);
}

void Recorder::end(std::uint64_t id) noexcept {
  std::optional<RangeRecord> range = flights_.find(id);
  if (!range) return;
  range->end_ns = monotonic_ns();
  if (is_collective(range->name)) account_.add_collective(range->start_ns, range->end_ns);
  if (keeps()) keep_range(log_of_this_thread(), *range);  // before it lands, as in pop()
  flights_.end(id);
}

void Recorder::take_thread(ThreadLog& log, Recording& recording, Cut& flights) {
  ThreadRanges thread{.thread_id = log.thread_id, .name = {}, .ranges = {}};
  Cut own(recording, std::exchange(log.seen_open, {}), thread.ranges);
  const std::vector<RangeRecord> open = log.open.look();
  RangeRing::Taken taken = log.take();
  note_lost(taken, recording);
  std::vector<RangeRecord> ended = std::exchange(log.rest, {});
  ended.insert(ended.end(), taken.records.begin(), taken.records.end());
  for (const RangeRecord& range : ended) {
    (range.in_flight ? flights : own).add_ended(range);
    if (range.end_ns > recording.end.monotonic_ns) log.rest.push_back(range);
  }
  if (keeps()) log.seen_open = own.add_open(open);
  if (thread.ranges.empty()) return;
  thread.name = name_of_thread(log.thread_id);
  recording.threads.push_back(std::move(thread));
}

Recording Recorder::take() {
  const std::lock_guard lock(mutex_);
  Recording recording;
  recording.begin = last_take_;
  recording.end = read_clocks();
  recording.step = step();
  Cut flights(recording, std::exchange(flights_seen_open_, {}), recording.in_flight);
  // Looked at before the rings, as each thread's open ranges are.
  const std::vector<RangeRecord> flying = flights_.look();
  std::vector<std::shared_ptr<ThreadLog>> living;
  for (const auto& log : logs_) {
    const bool ended = log->thread_has_ended.load(std::memory_order_acquire);
    take_thread(*log, recording, flights);
    if (!ended || !log->rest.empty()) living.push_back(log);
  }
  logs_ = std::move(living);
  if (keeps()) flights_seen_open_ = flights.add_open(flying);
  const std::uint64_t dropped = dropped_.load(std::memory_order_relaxed) + flights_.lost();
  recording.dropped += dropped - std::exchange(dropped_before_, dropped);
  last_take_ = recording.end;
  return recording;
}

}  // namespace sidestream::record

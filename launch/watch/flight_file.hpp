// What a rank leaves behind when the job hangs or fails: rank_00001.json in a folder of RUN/flight,
// with its last collectives and what every thread is doing.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "comm/failure_hook.hpp"
#include "comm/flight_recorder.hpp"
#include "launch/watch/background_task.hpp"
#include "launch/watch/heartbeat.hpp"
#include "launch/watch/thread_stacks.hpp"

namespace sidestream::launch {

class FlightFile {
 public:
  struct Outcome {
    bool written = false;
    std::string line = {};  // for people: where to look, or why there is nothing
  };

  // Whose files they are: messages say what else can be read of a run.
  enum class Of { kRun, kProgram };

  FlightFile(std::filesystem::path folder, int rank, const comm::FlightRecorder& flights,
             const Heartbeat& heartbeat, Of of = Of::kRun)
      : folder_(std::move(folder)),
        rank_(rank),
        flights_(flights),
        heartbeat_(heartbeat),
        of_(of) {}

  // Any thread, also while a collective hangs; replaces what this rank wrote before. Comes back
  // within a few seconds, whatever the file system does. Never throws.
  Outcome write(const std::string& why) noexcept;

  // For who has asked, and knows where it lies: says only what went wrong.
  void answer_request() noexcept;

  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::string text(const std::string& why) const;
  std::string whereabouts() const;

  std::filesystem::path folder_;
  int rank_;
  const comm::FlightRecorder& flights_;
  const Heartbeat& heartbeat_;
  Of of_;
  ThreadStacks stacks_;
  std::timed_mutex mutex_;
  BackgroundTask writing_;  // the last one; may be left behind
};

// While it lives, a failed collective leaves the file behind, and `tell` is told where.
class FlightOnFailure {
 public:
  FlightOnFailure(comm::FailureHook& hook, FlightFile& file, std::function<void(std::string)> tell)
      : hook_(hook),
        file_(file),
        tell_(std::move(tell)),
        id_(hook.add([this] { write("a collective has failed"); })) {}
  ~FlightOnFailure() { hook_.remove(id_); }
  FlightOnFailure(const FlightOnFailure&) = delete;
  FlightOnFailure& operator=(const FlightOnFailure&) = delete;

  // For what this rank has met by itself; the first call counts, for later ones only follow from
  // it.
  void write(const std::string& why) {
    if (written_.exchange(true)) return;
    tell_(file_.write(why).line);
  }

 private:
  comm::FailureHook& hook_;
  FlightFile& file_;
  std::function<void(std::string)> tell_;
  std::atomic<bool> written_ = false;
  comm::FailureHook::Id id_;  // last: the hook uses the rest
};

}  // namespace sidestream::launch

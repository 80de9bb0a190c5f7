// What a rank leaves behind when the job hangs or fails: RUN/flight/rank_00001.json with its last
// collectives and what every thread is doing.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "comm/failure_hook.hpp"
#include "comm/flight_recorder.hpp"
#include "launch/process/heartbeat.hpp"
#include "launch/process/thread_stacks.hpp"

namespace sidestream::launch {

class FlightFile {
 public:
  FlightFile(std::filesystem::path folder, int rank, const comm::FlightRecorder& flights,
             const Heartbeat& heartbeat)
      : folder_(std::move(folder)), rank_(rank), flights_(flights), heartbeat_(heartbeat) {}

  // Any thread, also while a collective hangs; replaces what this rank wrote before. Never throws:
  // what goes wrong is said on stderr.
  void write(const std::string& why) noexcept;

  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::string text(const std::string& why) const;

  std::filesystem::path folder_;
  int rank_;
  const comm::FlightRecorder& flights_;
  const Heartbeat& heartbeat_;
  ThreadStacks stacks_;
  std::timed_mutex mutex_;
};

// While it lives, a failed collective leaves the file behind.
class FlightOnFailure {
 public:
  FlightOnFailure(comm::FailureHook& hook, FlightFile& file)
      : hook_(hook), id_(hook.add([&file] { file.write("a collective has failed"); })) {}
  ~FlightOnFailure() { hook_.remove(id_); }
  FlightOnFailure(const FlightOnFailure&) = delete;
  FlightOnFailure& operator=(const FlightOnFailure&) = delete;

 private:
  comm::FailureHook& hook_;
  comm::FailureHook::Id id_;
};

}  // namespace sidestream::launch

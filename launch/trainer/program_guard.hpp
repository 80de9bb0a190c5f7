// What is left of a program of one's own that hangs or fails, as of a run of `train`: each rank's
// last collectives and what its threads were doing, in a folder of FOLDER/flight (flight_file.hpp).
//
//   launch::ProgramGuard guard(session, folder);
//   for (step ...) { guard.beat(step); ... }
//
// They are written when a collective fails, when this rank does not come back from a step, and on
// SIGUSR2, upon which the program goes on. A rank that hangs ends the job with exit code 6 and one
// message that names it and its step.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "launch/assembly/rank_guard.hpp"
#include "launch/process/dump_watch.hpp"
#include "launch/process/program.hpp"
#include "launch/watch/heartbeat.hpp"

namespace sidestream::launch {

class ProgramGuard {
 public:
  // Collective; the session outlives it. limit: for this rank alone, from one beat to the next;
  // collectives have their own deadline (CommunicatorConfig::timeout_collective). Throws
  // CollectiveError, PeerError.
  ProgramGuard(Session& session, const std::filesystem::path& folder,
               std::chrono::milliseconds limit = std::chrono::minutes(3));
  ProgramGuard(const ProgramGuard&) = delete;
  ProgramGuard& operator=(const ProgramGuard&) = delete;

  // Before each step, from 1; by the thread that trains. Peers that wait for this rank say which
  // one it is in.
  void beat(std::int64_t step) noexcept { heartbeat_->beat(ranges::Phase::kForward, step); }
  // Nothing is expected until the next beat: for what takes as long as it takes.
  void rest() noexcept { heartbeat_->rest(); }
  // For ModuleCheckpointOptions: saves and restores have their own deadline, not this limit.
  const std::shared_ptr<Heartbeat>& heartbeat() const noexcept { return heartbeat_; }

 private:
  std::shared_ptr<Heartbeat> heartbeat_;
  RankGuard guard_;
  DumpWatch requests_;  // last: uses the rest
};

}  // namespace sidestream::launch

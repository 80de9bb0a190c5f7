// A deadline for the steps of a job's start, where MPI offers none: MPI_Init and the making of
// communicators block until every rank has come, for ever if one does not.
//
// Every rank opens a socket without a file under a name that the ranks of its host know; the kernel
// removes it with the process. A thread waits for the deadline. Past it the ranks of this host that
// did not come, or were stopped, are named on stderr, and the process ends with exit code 6, upon
// which the launcher ends the job. One rank of a host speaks: the first that is there.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "comm/mpi_environment.hpp"
#include "core/base/file.hpp"

namespace sidestream::comm {

class SetupWatch {
 public:
  enum class Stage { kStartMpi, kMakeCommunicator, kFinishMpi };

  // Until its destruction the stage has to be over. Does nothing for a rank that is alone.
  SetupWatch(const LauncherEnvironment& launcher, Stage stage, std::chrono::milliseconds limit);
  ~SetupWatch() = default;  // stops the thread
  SetupWatch(const SetupWatch&) = delete;
  SetupWatch& operator=(const SetupWatch&) = delete;

 private:
  enum class Attendance { kThere, kStopped, kAbsent };

  std::string socket_name(int local_rank) const;
  void show_presence();
  Attendance attendance_of(int local_rank) const;
  std::string rank_text(int local_rank) const;
  std::string missing_ranks() const;
  bool is_first_present() const;
  void wait_for_deadline(const std::stop_token& stop, std::chrono::milliseconds limit) const;
  void give_up(const std::stop_token& stop, std::chrono::milliseconds limit) const;

  LauncherEnvironment launcher_;
  Stage stage_;
  core::UniqueFd presence_;
  std::jthread thread_;  // last: uses the rest
};

}  // namespace sidestream::comm

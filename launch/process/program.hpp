// The frame of every program that runs under mpirun: MPI, the communicator, and what an exception
// turns into.
//
//   int main(int argc, char** argv) {
//     return launch::run_program(argc, argv, {}, [](launch::Session& session) { ...; return
//     ExitCode::kDone; });
//   }
//
// On GPUs: CommunicatorConfig::device and choose_device() (comm/factory.hpp) before run_program.
// launch/run --program starts such a program with what its ranks need.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/factory.hpp"
#include "core/base/exit_code.hpp"
#include "launch/process/dump_request.hpp"
#include "launch/process/last_word.hpp"
#include "launch/process/stop_request.hpp"

namespace sidestream::launch {

// What a session stands on; all outlive it.
struct SessionParts {
  const comm::MpiEnvironment& environment;
  comm::Communicator& communicator;
  const StopRequest& stop;
  const DumpRequest& dump;
  comm::FailureHook& failure_hook;
  const comm::FlightRecorder& flights;
  LastWord& last_word;
};

// What a program has while it runs. Not copyable; lives in run_program.
class Session {
 public:
  explicit Session(const SessionParts& parts) : parts_(parts) {}

  comm::Communicator& communicator() const noexcept { return parts_.communicator; }
  // For a second communicator.
  const comm::MpiEnvironment& environment() const noexcept { return parts_.environment; }
  bool is_first_rank() const noexcept { return communicator().rank() == 0; }
  // Of this rank: a signal may have reached one and not yet another.
  bool stop_requested() const noexcept { return parts_.stop.requested(); }
  // Collective: whether any rank was asked to stop, the same on all; between steps. Throws
  // CollectiveError, PeerError.
  bool any_stop_requested() const;
  const DumpRequest& dump_request() const noexcept { return parts_.dump; }
  // Of the communicator's collectives.
  comm::FailureHook& failure_hook() const noexcept { return parts_.failure_hook; }
  // The last ones.
  const comm::FlightRecorder& flights() const noexcept { return parts_.flights; }

  // Printed below the message of a failure; one line, the last one that is left counts.
  void leave_word(std::string line) const { parts_.last_word.leave(std::move(line)); }

  // For a watchdog whose rank does not come back: tells the peers, prints the message unless a peer
  // does, and ends this process with exit code 6, upon which the launcher ends the job.
  [[noreturn]] void end_hanging_rank(const std::string& message) const noexcept;

 private:
  SessionParts parts_;
};

using ProgramBody = std::function<core::ExitCode(Session&)>;

// Starts MPI if a launcher started the process, makes the communicator and runs `body`. An
// AgreedError is printed by rank 0; any other exception is printed by the rank that threw it, and
// all ranks of the job stop with its exit code. A `body` that returns on one rank while others go
// on is such a failure, of a collective. Once in a process, and MPI is not started before: a
// failure of code 2 otherwise. Returns the exit code for main.
int run_program(int& argc, char**& argv, const comm::CommunicatorConfig& config,
                const ProgramBody& body);

// How messages of this process begin: "sidestream", or "sidestream [rank 2]" where it is one of
// several.
std::string name_in_messages();

// For what fails before MPI is up: prints `error` on the first rank of the launcher's job and
// returns the exit code.
int report_early(const std::exception& error);

}  // namespace sidestream::launch

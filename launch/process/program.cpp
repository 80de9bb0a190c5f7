#include "launch/process/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/exchange_values.hpp"
#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"
#include "core/base/file_size_limit.hpp"
#include "core/base/printable.hpp"
#include "core/base/warning.hpp"
#include "launch/process/agreement.hpp"
#include "launch/process/failure.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

// Messages of the communicator begin with the rank, because peers hand them on: once is enough.
std::string_view without_rank(std::string_view message, int rank) {
  const std::string own = fmt::format("rank {}: ", rank);
  return message.starts_with(own) ? message.substr(own.size()) : message;
}

void print_line(const std::string& line) {
  std::fflush(stdout);
  const std::string shown = core::printable_lines(line);
  std::fputs(shown.c_str(), stderr);  // one write: lines of several ranks do not mix
  std::fflush(stderr);
}

std::string name_of_rank(int rank, int size) {
  return size > 1 ? fmt::format("sidestream [rank {}]", rank) : "sidestream";
}

// `word`: more about it, on a line of its own; empty: nothing.
void print_message(const std::string& who, std::string_view message, const std::string& word) {
  print_line(
      fmt::format("{}: {}\n{}", who, message, word.empty() ? "" : fmt::format("  {}\n", word)));
}

void print_error(int rank, int size, const std::string& message, const std::string& word = "") {
  print_message(name_of_rank(rank, size), size > 1 ? without_rank(message, rank) : message, word);
}

// With the host where there are several: it may be the one that is to blame.
void print_hanging(const comm::Topology& ranks, const std::string& message,
                   const std::string& word) {
  const auto rank = static_cast<std::size_t>(ranks.rank);
  if (ranks.node_count == 1) return print_error(ranks.rank, ranks.size, message, word);
  print_message(fmt::format("sidestream [{}]", ranks.place_of(rank)), message, word);
}

// A peer's failure reaches this rank as PeerError before the peer has ended the job: leave it the
// time to do so, for its exit code is the one that explains what happened. More than what its
// records may take where its file system hangs.
void wait_for_the_failing_peer() { std::this_thread::sleep_for(std::chrono::seconds(18)); }

// One message of a node is enough: the rank that has it ends the job meanwhile.
void wait_unless_speaker(comm::Communicator* communicator) {
  if (communicator == nullptr || communicator->claim_message()) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
}

[[noreturn]] void stop_all_ranks(const comm::MpiEnvironment& environment,
                                 comm::Communicator* communicator, const Failure& failure,
                                 const LastWord& last_word) {
  if (failure.code == ExitCode::kPeer && !failure.peer_is_gone) wait_for_the_failing_peer();
  wait_unless_speaker(communicator);
  print_error(environment.rank(), environment.size(), failure.message, last_word.line());
  if (communicator != nullptr) communicator->announce_failure(failure.message);
  environment.abort(static_cast<int>(failure.code));
}

void print_warnings(const comm::Communicator& communicator,
                    const std::vector<std::string>& warnings) {
  if (communicator.rank() != 0) return;
  for (const std::string& warning : warnings) core::print_warning(warning);
}

}  // namespace

bool Session::any_stop_requested() const {
  const int mine = stop_requested() ? 1 : 0;
  const auto all = comm::exchange_values(communicator(), mine, {.purpose = "requests to stop"});
  return std::ranges::find(all, 1) != all.end();
}

void Session::end_hanging_rank(const std::string& message) const noexcept {
  comm::Communicator& ranks = communicator();
  ranks.announce_failure(message);
  wait_unless_speaker(&ranks);
  print_hanging(ranks.topology(), message, parts_.last_word.line());
  std::_Exit(static_cast<int>(ExitCode::kCollective));  // its thread cannot be called back
}

int run_program(int& argc, char**& argv, const comm::CommunicatorConfig& config,
                const ProgramBody& body) {
  core::report_file_size_limit();
  std::unique_ptr<comm::MpiEnvironment> environment;
  try {
    environment = std::make_unique<comm::MpiEnvironment>(&argc, &argv, config.timeout_setup);
  } catch (const std::exception& error) {
    return report_early(error);
  }
  const StopRequest
      stop;  // before the first collective: a request while ranks start must not kill them
  const DumpRequest dump;
  LastWord last_word;
  std::unique_ptr<comm::Communicator> communicator;
  try {
    std::vector<std::string> warnings;
    communicator = comm::make_communicator(*environment, config, warnings);
    print_warnings(*communicator, warnings);
    Session session({.environment = *environment,
                     .communicator = *communicator,
                     .stop = stop,
                     .dump = dump,
                     .failure_hook = *config.failure_hook,
                     .flights = *config.flights,
                     .last_word = last_word});
    const int code = static_cast<int>(body(session));
    communicator->leave();
    return code;
  } catch (const AgreedError& error) {
    if (environment->rank() == 0) print_error(0, 1, error.what());
    return static_cast<int>(error.code());
  } catch (const core::ConfigError& error) {
    if (communicator != nullptr)
      stop_all_ranks(*environment, communicator.get(), describe_failure(error), last_word);
    // Without a communicator it is about options, which all ranks share: each of them is here.
    if (environment->rank() == 0) print_error(0, environment->size(), error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    stop_all_ranks(*environment, communicator.get(), describe_failure(error), last_word);
  } catch (...) {
    const core::Error unknown("the program threw something that is no std::exception");
    stop_all_ranks(*environment, communicator.get(), describe_failure(unknown), last_word);
  }
}

std::string name_in_messages() {
  const auto launcher = comm::LauncherEnvironment::read();
  return name_of_rank(launcher.rank, launcher.size);
}

int report_early(const std::exception& error) {
  const Failure failure = describe_failure(error);
  const auto launcher = comm::LauncherEnvironment::read();
  if (launcher.rank == 0) {
    print_error(0, 1, failure.message);
  } else {
    // Most often all ranks fail alike, and rank 0 has said it: mpirun then ends this one meanwhile,
    // on a busy host some seconds later.
    std::this_thread::sleep_for(std::chrono::seconds(6));
    print_error(launcher.rank, launcher.size, failure.message);
  }
  return static_cast<int>(failure.code);
}

}  // namespace sidestream::launch

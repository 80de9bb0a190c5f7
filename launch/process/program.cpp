#include "launch/process/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <c10/util/Exception.h>

#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"
#include "launch/process/agreement.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

struct Failure {
  ExitCode code = ExitCode::kOther;
  std::string message;
};

Failure describe(const std::exception& error) {
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) return {own->code(), own->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {ExitCode::kMemory, "out of memory: a smaller --batch-size-per-rank or --sequence-length needs less"};
  }
  if (const auto* torch_error = dynamic_cast<const c10::OutOfMemoryError*>(&error)) {
    return {ExitCode::kMemory, std::string("out of memory: ") + torch_error->what_without_backtrace()};
  }
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    const bool memory = text.find("DefaultCPUAllocator: can't allocate") != std::string::npos;
    return {memory ? ExitCode::kMemory : ExitCode::kOther, text};
  }
  return {ExitCode::kOther, error.what()};
}

void print_error(int rank, int size, const std::string& message) {
  const std::string tag = size > 1 ? fmt::format("sidestream [rank {}]: ", rank) : "sidestream: ";
  const std::string line = tag + message + "\n";
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);  // one write: lines of several ranks do not mix
  std::fflush(stderr);
}

// A peer's failure reaches this rank as PeerError before the peer has ended the job: leave it the time to do so, for
// its exit code is the one that explains what happened.
void wait_for_the_failing_peer() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

[[noreturn]] void stop_all_ranks(const comm::MpiEnvironment& environment, comm::Communicator* communicator,
                                 const Failure& failure) {
  if (failure.code == ExitCode::kPeer) {
    wait_for_the_failing_peer();
  }
  print_error(environment.rank(), environment.size(), failure.message);
  if (communicator != nullptr) communicator->announce_failure(failure.message);
  environment.abort(static_cast<int>(failure.code));
}

void print_warnings(const comm::Communicator& communicator, const std::vector<std::string>& warnings) {
  if (communicator.rank() != 0) return;
  for (const std::string& warning : warnings) fmt::print(stderr, "sidestream: warning: {}\n", warning);
}

}  // namespace

int run_program(int& argc, char**& argv, const comm::CommunicatorConfig& config, const ProgramBody& body) {
  std::unique_ptr<comm::MpiEnvironment> environment;
  try {
    environment = std::make_unique<comm::MpiEnvironment>(&argc, &argv);
  } catch (const std::exception& error) {
    return report_early(error);
  }
  std::unique_ptr<comm::Communicator> communicator;
  try {
    std::vector<std::string> warnings;
    communicator = comm::make_communicator(*environment, config, warnings);
    print_warnings(*communicator, warnings);
    const StopRequest stop;
    Session session(*communicator, stop);
    return static_cast<int>(body(session));
  } catch (const AgreedError& error) {
    if (environment->rank() == 0) print_error(0, 1, error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    stop_all_ranks(*environment, communicator.get(), describe(error));
  }
}

int report_early(const std::exception& error) {
  const Failure failure = describe(error);
  if (comm::LauncherEnvironment::read().rank == 0) print_error(0, 1, failure.message);
  return static_cast<int>(failure.code);
}

}  // namespace sidestream::launch

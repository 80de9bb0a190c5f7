// A job in which something goes wrong, the way a trainer would run it: the message on stderr, the
// documented exit code, all ranks stopped. failures_test.cpp starts it under mpirun and looks at
// both.
//
//   failure_program <scenario> <shared-memory: on|off> [checked]
#include <mpi.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.hpp"
#include "core/base/dead_peer_error.hpp"
#include "core/base/error.hpp"

namespace {

using sidestream::comm::Communicator;
using sidestream::core::DType;

constexpr std::chrono::milliseconds kDeadline{600};
constexpr std::chrono::milliseconds kSetupDeadline{1500};
constexpr std::chrono::milliseconds kPatientSetup{20000};  // where nothing is to go wrong before
constexpr std::chrono::seconds kLongerThanTheTest{60};

void all_reduce(Communicator& communicator, std::size_t count, int bucket, int model = 0) {
  std::vector<float> values(count, 1.0F);
  communicator.all_reduce(values.data(), count, DType::kFloat32, {.bucket = bucket, .model = model})
      .wait();
}

// Rank 1 does not come to a stage of the start, or stops in front of it.
void come_to(const std::string& stage, const std::string& scenario) {
  if (sidestream::comm::LauncherEnvironment::read().rank != 1) return;
  if (scenario == "late-for-" + stage) std::this_thread::sleep_for(kLongerThanTheTest);
  if (scenario == "stopped-before-" + stage) raise(SIGSTOP);
}

std::chrono::milliseconds setup_deadline(const std::string& scenario) {
  const bool fails_in_setup =
      scenario.rfind("late-for-", 0) == 0 || scenario.rfind("stopped-before-", 0) == 0;
  return fails_in_setup ? kSetupDeadline : kPatientSetup;
}

// For whoever waits until the ranks talk to each other.
void say_that_it_runs() {
  if (const char* file = std::getenv("SIDESTREAM_TEST_RUNS"))  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(file) << "runs\n";
}

[[noreturn]] void exchange_for_ever(Communicator& communicator) {
  communicator.exchange("round and round");
  if (communicator.rank() == 0) say_that_it_runs();
  while (true) communicator.exchange("round and round");
}

// Memory that MPI knows is left alone once an operation has failed: its owner may have freed it.
void receive_after_a_failure(Communicator& communicator) {
  std::vector<int> values(4, 7);
  if (communicator.rank() == 1) {
    std::this_thread::sleep_for(2 * kDeadline);
    std::fill(values.begin(), values.end(), 8);
    MPI_Send(values.data(), 4, MPI_INT, 0, 5, MPI_COMM_WORLD);
    std::this_thread::sleep_for(kLongerThanTheTest);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(values.data(), 4, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
  try {
    all_reduce(communicator, 1000, 7);
  } catch (const sidestream::core::CollectiveError&) {
    std::this_thread::sleep_for(4 * kDeadline);
    std::fprintf(stderr, "the buffer is %s\n", values[0] == 7 ? "untouched" : "overwritten");
    throw;
  }
}

// As a trainer does: one message of a node is enough.
void wait_unless_speaker(Communicator& communicator) {
  if (!communicator.claim_message()) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
}

void stop_this_process_soon() {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  raise(SIGSTOP);  // all threads of it
}

// Rank 1 fails alone, with a collective in flight that the others do not come to any more.
void fail_in_flight(Communicator& communicator) {
  communicator.barrier();
  if (communicator.rank() != 1) {
    while (!communicator.failure_of_peer())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return communicator.barrier();
  }
  std::vector<float> values(1000);
  sidestream::comm::Work dropped =
      communicator.all_reduce(values.data(), values.size(), DType::kFloat32, {.bucket = 7});
  communicator.announce_failure("rank 1: shard_7.bin is cut short");
  try {
    dropped.wait();
  } catch (const sidestream::core::Error& error) {
    std::fprintf(stderr, "dropped: %s\n", error.what());
  }
  throw sidestream::core::DataError("rank 1: shard_7.bin is cut short");
}

// A rank is killed while nobody waits for it; the others notice, and then end together.
void outlive(Communicator& communicator, int victim) {
  constexpr std::chrono::milliseconds kUntilAllHaveNoticed{1500};
  communicator.note_activity(sidestream::ranges::Phase::kBackward, 26);
  communicator.barrier();
  if (communicator.rank() == victim) raise(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  while (!communicator.failure_of_peer()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  const auto failure = communicator.failure_of_peer();
  std::fprintf(stderr, "noticed after %d ms%s: %s\n", static_cast<int>(ms.count()),
               failure->is_gone ? ", it is gone" : "", failure->text.c_str());
  std::this_thread::sleep_for(kUntilAllHaveNoticed);
  communicator.barrier();
}

// Two operations that work, then rank 1 does something else than rank 0.
void play(Communicator& communicator, const std::string& scenario) {
  all_reduce(communicator, 1000, 0);
  all_reduce(communicator, 1000, 1);
  const bool culprit = communicator.rank() == 1;
  if (scenario == "receives-late") return receive_after_a_failure(communicator);
  if (scenario.ends_with("-allocate")) {
    come_to("allocate", scenario);
    communicator.allocate(100'000);
    return;
  }
  if (culprit && scenario == "late") std::this_thread::sleep_for(kLongerThanTheTest);
  if (culprit && scenario == "stopped") raise(SIGSTOP);
  if (scenario == "stopped-anywhere" || scenario == "for-ever") {
    const bool stops = culprit && scenario == "stopped-anywhere";
    const std::jthread stopper = stops ? std::jthread(stop_this_process_soon) : std::jthread();
    exchange_for_ever(communicator);
  }
  if (culprit && scenario == "killed") raise(SIGKILL);
  if (scenario == "fails-in-flight") return fail_in_flight(communicator);
  if (scenario == "killed-later") return outlive(communicator, 1);
  if (scenario == "first-killed-later") return outlive(communicator, 0);
  if (scenario == "buckets") return all_reduce(communicator, 100, culprit ? 8 : 7);
  if (scenario == "models") return all_reduce(communicator, 100, 7, culprit ? 1 : 0);
  if (culprit && scenario == "throws")
    throw sidestream::core::DataError("rank 1: shard_7.bin is cut short");
  if (culprit && scenario == "announces") {
    communicator.announce_failure("rank 1: the disk is full");
    std::this_thread::sleep_for(kLongerThanTheTest);
  }
  if (scenario == "exchanges") {  // of lengths that any reader would take
    communicator.exchange("eight of", {.purpose = culprit ? "replica hashes" : "outcomes"});
    return;
  }
  if (scenario == "counts") return all_reduce(communicator, culprit ? 200 : 100, 7);
  if (culprit && scenario == "kinds") return communicator.barrier();
  if (culprit && scenario == "unfinished-work") {
    std::vector<float> values(100);
    sidestream::comm::Work dropped = communicator.all_reduce(
        values.data(), values.size(), DType::kFloat32, {.bucket = 2, .model = 0});
    std::this_thread::sleep_for(kLongerThanTheTest);
  }
  if (scenario == "unfinished-work")
    all_reduce(communicator, 100, 2);  // goes through: only the next one hangs
  all_reduce(communicator, 1000, 7);
}

// As the trainer does: the exit code of the rank that failed explains what happened.
void leave_the_end_to_the_failing_rank(const sidestream::core::Error& error) {
  const bool of_a_peer = error.code() == sidestream::core::ExitCode::kPeer &&
                         dynamic_cast<const sidestream::core::DeadPeerError*>(&error) == nullptr;
  if (of_a_peer) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  try {
    const std::string scenario = argv[1];
    come_to("mpi", scenario);
    sidestream::comm::MpiEnvironment environment(&argc, &argv, setup_deadline(scenario));
    try {
      come_to("communicator", scenario);
      std::vector<std::string> warnings;
      const auto communicator =
          sidestream::comm::make_communicator(environment,
                                              {.backend = sidestream::comm::Backend::kMpi,
                                               .shared_memory = std::strcmp(argv[2], "on") == 0,
                                               .timeout_setup = setup_deadline(scenario),
                                               .timeout_collective = kDeadline,
                                               .setup_flag = "--setup-deadline",
                                               .collective_flag = "--deadline",
                                               .check_collectives = argc > 3},
                                              warnings);
      try {
        play(*communicator, scenario);
      } catch (const sidestream::core::Error& error) {
        communicator->announce_failure(error.what());
        wait_unless_speaker(*communicator);
        throw;
      }
    } catch (const sidestream::core::Error& error) {
      std::fprintf(stderr, "FAILED(%d): %s\n", static_cast<int>(error.code()), error.what());
      leave_the_end_to_the_failing_rank(error);
      environment.abort(static_cast<int>(error.code()));
    }
  } catch (const sidestream::core::Error& error) {
    std::fprintf(stderr, "FAILED(%d): %s\n", static_cast<int>(error.code()), error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

#include "comm/mpi_environment.hpp"

#include <mpi.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>

#include "comm/mpi_check.hpp"
#include "comm/mpi_handles.hpp"
#include "comm/setup_watch.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

constexpr std::chrono::milliseconds kTimeForLastWords{200};

// Names of the variables that a launcher sets. SLURM_NTASKS is no proof: it is also there in a
// batch script that starts a single process.
struct LauncherVariables {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* job;
};
constexpr LauncherVariables kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
     "SLURM_JOB_ID"},
};

std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Where the launcher does not say: the ranks of a host are children of one process of the launcher.
std::string job_name(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "child-of-" + std::to_string(::getppid());
}

void require_threads(int provided) {
  if (provided >= MPI_THREAD_MULTIPLE) return;
  throw core::ConfigError(
      "MPI gives thread level " + std::to_string(provided) + ", needed is MPI_THREAD_MULTIPLE (" +
      std::to_string(MPI_THREAD_MULTIPLE) + "): use an MPI that was built with thread support");
}

void require_same_size(const LauncherEnvironment& launcher, int size) {
  if (launcher.size == 1 || size == launcher.size) return;
  throw core::ConfigError(
      launcher.source + " says " + std::to_string(launcher.size) + " ranks, MPI says " +
      std::to_string(size) +
      ": the launcher belongs to another MPI than this program. Start it with the mpirun of the "
      "MPI it was built with (sidestream --version names it)");
}

// MPI starts once in the life of a process.
void require_fresh_mpi() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun == 0 && ended == 0) return;
  throw core::ConfigError(
      ended != 0 ? "MPI has been ended in this process and cannot start again: make one "
                   "MpiEnvironment (run_program), for all that follows"
                 : "MPI has been started in this process already: leave that to "
                   "MpiEnvironment (run_program)");
}

}  // namespace

LauncherEnvironment LauncherEnvironment::read() {
  for (const LauncherVariables& variables : kLaunchers) {
    const auto rank = number(variables.rank);
    const auto size = number(variables.size);
    if (!rank || !size) continue;
    return {.launched = true,
            .rank = *rank,
            .size = *size,
            .local_rank = number(variables.local_rank).value_or(0),
            .local_size = number(variables.local_size).value_or(0),
            .job = job_name(variables.job),
            .source = variables.size};
  }
  return {};
}

MpiEnvironment::MpiEnvironment(int* argc, char*** argv, std::chrono::milliseconds limit)
    : limit_(limit) {
  const LauncherEnvironment launcher = LauncherEnvironment::read();
  if (!launcher.launched) return;
  require_fresh_mpi();
  const SetupWatch watch(launcher, SetupWatch::Stage::kStartMpi, limit);
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  active_ = true;
  try {
    check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler");
    require_threads(provided);
    rank_ = rank_of(MPI_COMM_WORLD);
    size_ = size_of(MPI_COMM_WORLD);
    require_same_size(launcher, size_);
  } catch (...) {
    MPI_Finalize();
    throw;
  }
}

MpiEnvironment::~MpiEnvironment() {
  if (!active_ || failed_->load() || std::uncaught_exceptions() > 0) return;
  if (mpi_is_finalized()) return;
  const SetupWatch watch(LauncherEnvironment::read(), SetupWatch::Stage::kFinishMpi, limit_);
  MPI_Finalize();
}

void MpiEnvironment::abort(int exit_code) const noexcept {
  std::fflush(nullptr);
  if (active_ && !mpi_is_finalized()) {
    // mpirun of Open MPI 5 drops what it has not yet read of a rank's messages.
    std::this_thread::sleep_for(kTimeForLastWords);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  std::_Exit(exit_code);
}

}  // namespace sidestream::comm

// The lifetime of MPI in this process: made in main, immovable, outlives every communicator.
//
// A process that no MPI launcher started does not initialise MPI at all, so that one GPU or one CPU
// process needs no MPI at run time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace sidestream::comm {

// What the environment variables of a launcher (Open MPI, PMIx, Slurm) say, readable before MPI
// starts.
struct LauncherEnvironment {
  bool launched = false;  // a launcher started this process
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 0;  // ranks on this host; 0: not said
  std::string job;     // the same for all ranks of a job, on a host another one for every job
  std::string source;  // name of the variable that said so

  static LauncherEnvironment read();
};

class MpiEnvironment {
 public:
  // Initialises MPI with MPI_THREAD_MULTIPLE if a launcher started the process, and sets
  // MPI_ERRORS_RETURN on MPI_COMM_WORLD: there a failed call of the program's own returns its error
  // code, which has to be looked at, instead of ending the job. Throws ConfigError when the
  // launcher's environment says several ranks and MPI says one (the job would be N independent
  // trainings). Past `limit` the process ends with exit code 6 and names the ranks that did not
  // come: there is no way back out of MPI_Init.
  MpiEnvironment(int* argc, char*** argv,
                 std::chrono::milliseconds limit = std::chrono::minutes(5));
  // MPI_Finalize, within the same limit. Left out after a failed collective and while an exception
  // passes, when it would wait for ranks that never come: end such a program with abort().
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  bool active() const noexcept { return active_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  // Ends all ranks with this exit code; mpirun returns it. Without MPI it ends the process. Does
  // not return.
  [[noreturn]] void abort(int exit_code) const noexcept;

  // Set by communicators when a collective has failed.
  std::shared_ptr<std::atomic<bool>> failure_flag() const { return failed_; }

 private:
  std::shared_ptr<std::atomic<bool>> failed_ = std::make_shared<std::atomic<bool>>(false);
  std::chrono::milliseconds limit_;
  bool active_ = false;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace sidestream::comm

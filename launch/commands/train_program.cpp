#include "launch/commands/train_program.hpp"

#include <fmt/ranges.h>

#include <cstdlib>
#include <vector>

#include "comm/mpi_environment.hpp"
#include "core/base/shell_words.hpp"
#include "core/faults/fault_injector.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {
namespace {

// What is planted before MPI starts: for ranks that never come to it.
void meet_faults_of_the_start(const TrainOptions& options) {
  faults::require_permission(options.faults);
  faults::require_ranks(options.faults, comm::LauncherEnvironment::read().size);
  faults::require_steps(options.faults, options.steps);
  faults::FaultInjector(options.faults, {.rank = comm::LauncherEnvironment::read().rank,
                                         .attempt = faults::Victim::attempt_of_this_process()})
      .pass(faults::Point::kStart, 0);
}

// What libraries read from the environment, before their threads and MPI's begin.
void prepare_environment(const TrainOptions& options) {
  // LibTorch asks for huge pages where the system leaves them to programs (madvise): walks of page
  // tables cost some 6 % of a bf16 step on AMX.
  if (options.comm.huge_pages) setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);
  // Without a GPU Kineto prints an error that is none; it reads this before its first use.
  if (options.record.profile) setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  if (!options.deterministic) return;
  // cuBLAS keeps its promise of equal bits only with a workspace of fixed size; sums in switches
  // (NVLS) come in any order.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
}

bool gathers_weights(const TrainOptions& options) {
  const auto sharing = data_parallel_config(options).state_sharing;
  return parallel::settled_sharing({.state_sharing = sharing}, parallel::RanksShare::kNothing) ==
         parallel::StateSharing::kSharded;
}

// --nccl-ctas auto between the GPUs of one machine: what `bench` found faster here. The policy is
// the whole communicator's, and another order of sums may come with it, which --deterministic
// excludes.
comm::nccl::Tuning tuning_of(const TrainOptions& options, const comm::DeviceFinding& gpu) {
  const auto launcher = comm::LauncherEnvironment::read();
  const bool one_machine = launcher.size > 1 && launcher.local_size == launcher.size;
  if (!one_machine || !gpu.usable() || options.deterministic || !gathers_weights(options))
    return options.comm.nccl;
  const auto stored = load_ceilings(ceilings_file(), gpu_name());
  if (!stored || !stored->device) return options.comm.nccl;
  const comm::nccl::Tuning tuning =
      tuning_by_measurement(options.comm.nccl, stored->device->gather_paths,
                            {.count = launcher.size, .captures = options.cuda_graph});
  if (launcher.rank == 0 && tuning.is_tuned() && !options.comm.nccl.is_tuned())
    fmt::print(
        "--nccl-ctas auto: none, by which weights are gathered as fast here (`sidestream bench "
        "allgather`)\n");
  return tuning;
}

}  // namespace

int run_train_program(const CommandCall& call, const TrainOptions& options,
                      const ProgramBody& body) {
  meet_faults_of_the_start(options);
  prepare_environment(options);
  comm::CommunicatorConfig communication = communicator_config(options);
  comm::choose_device(communication);
  communication.nccl = tuning_of(options, communication.gpu);
  return run_program(call.argc, call.argv, communication, body);
}

std::string command_line_of(const CommandCall& call) {
  return core::shell_words({call.argv, call.argv + call.argc});
}

}  // namespace sidestream::launch

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "comm/device/device_choice.hpp"
#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/commands/bench_collective.hpp"
#include "launch/commands/bench_overlap.hpp"
#include "launch/commands/bench_step.hpp"
#include "launch/commands/commands.hpp"
#include "launch/options/bench_options.hpp"
#include "launch/process/program.hpp"
#include "launch/process/tuning.hpp"
#include "launch/verify/machine_watch.hpp"

namespace sidestream::launch {
namespace {

void print(const Ceilings& ceilings) {
  fmt::print("{} with {} thread(s)\n", ceilings.processor, ceilings.cores);
  fmt::print("  matrix product fp32  {:8.1f} GFLOP/s\n", ceilings.fp32_flops_per_s * 1e-9);
  fmt::print("  matrix product bf16  {:8.1f} GFLOP/s\n", ceilings.bf16_flops_per_s * 1e-9);
  fmt::print("  memory               {:8.1f} GB/s (bytes read + bytes written)\n",
             ceilings.memory_bytes_per_s * 1e-9);
  if (!ceilings.device) return;
  const DeviceCeilings& device = *ceilings.device;
  fmt::print("{}\n", device.name.empty() ? "first GPU" : device.name);
  for (const auto& [dtype, rate] : device.flops_per_s)
    fmt::print("  matrix product {}  {:8.1f} TFLOP/s\n", dtype, rate * 1e-12);
  fmt::print("  memory, copy         {:8.1f} GB/s (bytes read + bytes written)\n",
             device.memory_bytes_per_s * 1e-9);
  fmt::print("  host to device       {:8.1f} GB/s, back {:.1f} GB/s (pinned)\n",
             device.host_to_device_bytes_per_s * 1e-9, device.device_to_host_bytes_per_s * 1e-9);
}

void store(const BenchOptions& options, const Ceilings& fresh) {
  const std::string gpu = fresh.device ? fresh.device->name : "";
  KeptCeilings result;
  update_ceilings(ceilings_file(), gpu, [&](const std::optional<Ceilings>& stored) {
    result = keep_better(options.replace ? std::nullopt : stored, fresh);
    return result.kept;
  });
  for (const std::string& remark : result.remarks)
    fmt::print("{}{}\n", remark, " (--replace stores the new one)");
  fmt::print("kept in {}: the denominator of MFU on this machine\n", ceilings_file().string());
}

// The GPU is measured where there is one, unless it is said what to measure.
bool measures_device(const BenchOptions& options) {
  if (options.device == comm::DeviceWish::kCpu) return false;
  const comm::DeviceFinding found = comm::find_device(*comm::cuda::make_driver(), 0);
  if (found.usable() || options.device == comm::DeviceWish::kAuto) return found.usable();
  throw core::ConfigError("--device cuda: there is no usable GPU: " + found.problem);
}

// What is measured beside other work is no ceiling: shares of it, as MFU is one, come out too high.
void warn_of_others(const std::optional<double>& share_of_processors) {
  constexpr double kNoise = 0.05;
  if (share_of_processors.value_or(0) <= kNoise) return;
  fmt::print(
      "other programs, or what this machine runs on, took {:.0f} % of the processors meanwhile: "
      "MFU may come out too high; measure again when they have ended\n",
      *share_of_processors * 100);
}

int measure_machine(const BenchOptions& options) {
  const bool with_device = measures_device(options);
  pin_and_set_threads(core::allowed_processors(), {}, options.threads);
  flush_denormals_on_all_threads(true);
  MachineWatch watch;
  Ceilings ceilings = measure_processor(options.seconds);
  if (with_device) ceilings.device = measure_device(options.seconds);
  print(ceilings);
  warn_of_others(watch.take().foreign_cpu);
  store(options, ceilings);
  return 0;
}

struct MeasuredLink {
  bool between_gpus = false;
  int ranks = 0;
  double bytes_per_s = 0;
};

// A link is kept beside the figures of its processor, or of its GPU.
std::optional<Ceilings> with_link(const std::optional<Ceilings>& stored, const MeasuredLink& fresh,
                                  const BenchOptions& options) {
  if (!stored || stored->cores == 0) {
    fmt::print("not kept: `sidestream bench ceilings` without mpirun comes first\n");
    return std::nullopt;
  }
  if (fresh.between_gpus && !stored->device) {
    fmt::print("not kept: `sidestream bench ceilings` has not measured a GPU here yet\n");
    return std::nullopt;
  }
  Ceilings kept = *stored;
  LinkRates& links = fresh.between_gpus ? kept.device->link_bytes_per_s : kept.link_bytes_per_s;
  double& link = links[fresh.ranks];
  if (link > fresh.bytes_per_s && !options.replace)
    fmt::print(
        "the stored figure, {:.1f} GB/s, is higher and stays (--replace stores the new one)\n",
        link * 1e-9);
  link = options.replace ? fresh.bytes_per_s : std::max(link, fresh.bytes_per_s);
  return kept;
}

// Under mpirun it is the link between the ranks that is measured.
core::ExitCode measure_ranks(const BenchOptions& options, Session& session) {
  const CollectiveRate measured = measure_link(
      session.communicator(),
      {.seconds = options.seconds, .stop_requested = [&] { return session.stop_requested(); }});
  const core::ExitCode code = measured.stopped ? core::ExitCode::kPreempted : core::ExitCode::kDone;
  const double rate = measured.bus_bytes_per_s();
  if (!session.is_first_rank()) return code;
  const int ranks = session.communicator().size();
  if (measured.repeats > 0)
    fmt::print("  all-reduce, {} ranks  {:8.1f} GB/s bus bandwidth ({})\n", ranks, rate * 1e-9,
               session.communicator().backend_name());
  if (measured.stopped) {
    fmt::print("not kept: asked to stop\n");
    return code;
  }
  if (session.communicator().topology().node_count > 1) {
    fmt::print("not kept: the ranks are on several machines\n");
    return core::ExitCode::kDone;
  }
  const MeasuredLink fresh{.between_gpus = session.communicator().device().has_value(),
                           .ranks = ranks,
                           .bytes_per_s = rate};
  update_ceilings(
      ceilings_file(), fresh.between_gpus ? gpu_name() : "",
      [&](const std::optional<Ceilings>& stored) { return with_link(stored, fresh, options); });
  return core::ExitCode::kDone;
}

// What goes on between ranks: its word, and what measures it.
core::ExitCode bench_between_ranks(const BenchOptions& options,
                                   const comm::CommunicatorConfig& config, Session& session) {
  switch (*options.subject) {
    case BenchSubject::kCeilings:
      return measure_ranks(options, session);
    case BenchSubject::kAllReduce:
      return bench_collective(session, config, options, Collective::kAllReduce);
    case BenchSubject::kAllGather:
      return bench_collective(session, config, options, Collective::kAllGather);
    case BenchSubject::kReduceScatter:
      return bench_collective(session, config, options, Collective::kReduceScatter);
    case BenchSubject::kOverlap:
      return bench_overlap(session, options);
    case BenchSubject::kStep:
      break;
  }
  throw core::Error("no such subject to measure between ranks");
}

void require_ranks(const std::string& subject) {
  if (comm::LauncherEnvironment::read().size >= 2) return;
  throw core::ConfigError(
      fmt::format("`sidestream bench {0}` measures what goes on between ranks: `mpirun -np 2 "
                  "--bind-to none sidestream bench {0}`",
                  subject));
}

}  // namespace

int run_bench(const CommandCall& call) {
  const BenchOptions options = parse_bench_options(call.arguments);
  const BenchSubject subject = *options.subject;
  if (subject == BenchSubject::kStep) return run_bench_step(call, options.step);
  const int ranks = comm::LauncherEnvironment::read().size;
  check_ranks_of_bench(options, ranks);
  const bool alone = ranks < 2;
  if (subject == BenchSubject::kCeilings && alone) return measure_machine(options);
  require_ranks(std::string(name_of(subject)));
  comm::CommunicatorConfig config{
      .backend = options.backend, .device = options.device, .gpu_sharing = options.gpu_sharing};
  comm::choose_device(config);
  return run_program(call.argc, call.argv, config, [&](Session& session) {
    return bench_between_ranks(options, config, session);
  });
}

}  // namespace sidestream::launch

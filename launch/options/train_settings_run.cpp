// The run itself: what is called, where it writes, how long it trains; and the process: device,
// threads, deadlines.
#include <chrono>
#include <cmath>

#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;

// Seconds on the command line, milliseconds inside.
template <typename Access>
Setting<Options> seconds(Flag flag, Access access) {
  constexpr NumberRange kRange{.min = 0.1, .max = 7 * 86400.0};
  return {std::move(flag),
          [=](Options& options, const std::string& text) {
            access(options) =
                std::chrono::milliseconds(std::llround(parse_number(text, kRange) * 1000));
          },
          [=](const Options& options) {
            return std::optional(number_text(access(options).count() / 1000.0));
          }};
}

Setting<Options> config() {
  return {
      {.name = "config",
       .value_name = "FILE",
       .help =
           "file with lines 'key = value'; keys are the names of these flags, '#' starts a comment",
       .scope = FlagScope::kCommandLine},
      [](Options&, const std::string&) {},
      [](const Options&) { return std::nullopt; }};
}

Setting<Options> threads() {
  return {{"threads", "N|auto",
           "threads of a rank for compute; auto: its share of the node's cores", "auto"},
          [](Options& options, const std::string& text) {
            options.threads.reset();
            if (text != "auto")
              options.threads = static_cast<int>(parse_integer(text, {1, 1024}, "auto"));
          },
          [](const Options& options) {
            return std::optional(options.threads ? std::to_string(*options.threads)
                                                 : std::string("auto"));
          }};
}

}  // namespace

SettingGroup<TrainOptions> run_settings() {
  return {
      "Run",
      {config(),
       on_off<Options>(
           call_switch_named("print-config",
                             "print every resolved setting as a config file, and stop"),
           [](auto& o) -> auto& { return o.print_config; }),
       on_off<Options>(
           call_switch_named("dry-run", "plan buckets, memory and steps; train nothing"),
           [](auto& o) -> auto& { return o.dry_run; }),
       text<Options>(
           {"run-dir", "FOLDER", "where metrics, checkpoints and the resolved config go"},
           [](auto& o) -> auto& { return o.run_dir; }),
       count<Options>(
           {"steps", "N", "optimizer steps; 0 leaves the initial weights as a checkpoint"},
           [](auto& o) -> auto& { return o.steps; }, {0, 1'000'000'000}),
       count<Options>(
           {"seed", "N",
            "seed of the weights, the order of samples, dropout and the rounding of bf16 moments"},
           [](auto& o) -> auto& { return o.seed; }, {}),
       on_off<Options>(
           switch_named("deterministic", "same bits every time, also on a GPU"),
           [](auto& o) -> auto& { return o.deterministic; }),
       count<Options>(
           {"log-every", "STEPS",
            "a line of metrics every so many steps; 0: of the last one, and evaluated ones"},
           [](auto& o) -> auto& { return o.log_every; }, {}),
       count<Options>({"checkpoint-every", "STEPS", "save every so many steps; 0: only at the end"},
                      [](auto& o) -> auto& { return o.checkpoint.every; }, {}),
       count<Options>({"keep-checkpoints", "N", "newest checkpoints to keep; 0: all"},
                      [](auto& o) -> auto& { return o.checkpoint.keep; }, {0, 1'000'000}),
       on_off<Options>(
           {"async-checkpoints", "on|off",
            "write a copy of the tensors while training goes on; off: training waits "
            "until the checkpoint is on disk"},
           [](auto& o) -> auto& { return o.checkpoint.asynchronous; }),
       text<Options>(
           {"resume", "auto|none|PATH",
            "go on from the newest good checkpoint of the run directory "
            "(fresh where there is none), or from PATH"},
           [](auto& o) -> auto& { return o.checkpoint.resume; })}};
}

SettingGroup<TrainOptions> process_settings() {
  return {"Device, threads and deadlines",
          {choice<Options, Device>(
               {"device", "auto|cpu|cuda", "where the model lives; auto: a GPU if there is one"},
               {{"auto", Device::kAuto}, {"cpu", Device::kCpu}, {"cuda", Device::kCuda}},
               [](auto& o) -> auto& { return o.device; }),
           choice<Options, comm::Backend>(
               {"backend", "auto|single|mpi|nccl", "how ranks exchange gradients"},
               {{"auto", comm::Backend::kAuto},
                {"single", comm::Backend::kSingle},
                {"mpi", comm::Backend::kMpi},
                {"nccl", comm::Backend::kNccl}},
               [](auto& o) -> auto& { return o.comm.backend; }),
           choice<Options, comm::GpuSharing>(
               {"share-gpus", "on|off", "let ranks share a GPU: for tests, never for speed"},
               {{"on", comm::GpuSharing::kAllowed}, {"off", comm::GpuSharing::kRefused}},
               [](auto& o) -> auto& { return o.comm.gpu_sharing; }),
           threads(),
           choice<Options, Ranges>(
               {"ranges", "steps|layers", "NVTX ranges around phases, or around every layer too"},
               {{"steps", Ranges::kSteps}, {"layers", Ranges::kLayers}},
               [](auto& o) -> auto& { return o.ranges; }),
           seconds(
               {"timeout-setup", "SECONDS", "deadline for all ranks to meet"},
               [](auto& o) -> auto& { return o.timeouts.setup; }),
           seconds(
               {"timeout-step", "SECONDS",
                "deadline of a collective during training, of each part of a step, and of the end "
                "of a run"},
               [](auto& o) -> auto& { return o.timeouts.step; }),
           seconds(
               {"timeout-checkpoint", "SECONDS", "deadline while a checkpoint is written or read"},
               [](auto& o) -> auto& { return o.timeouts.checkpoint; }),
           seconds(
               {"timeout-eval", "SECONDS", "deadline during an evaluation"},
               [](auto& o) -> auto& { return o.timeouts.evaluation; })}};
}

}  // namespace sidestream::launch::detail

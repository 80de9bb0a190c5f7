// Every optimisation with its off position.
//
// --overlap and --bucketing are two flags for one strategy: per parameter (both off), bucketed
// (--bucketing on), and overlapped (both on; overlap needs buckets). The parser passes them in only
// after it has settled which holds.
#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;
using parallel::GradientSync;

Setting<Options> baseline() {
  return on_off<Options>(
      call_switch_named(
          "baseline",
          "switch the optimisations off: one blocking all-reduce a parameter, reading by the "
          "training thread, "
          "plain operators, fp32. Flags on the command line switch single ones on again"),
      [](auto& o) -> auto& { return o.baseline; });
}

Setting<Options> bucketing() {
  return {{"bucketing", "on|off",
           "sum gradients in buckets; off: parameter by parameter, and no overlap"},
          [](Options& options, const std::string& text) {
            options.parallel.gradient_sync =
                parse_on_off(text) ? GradientSync::kBucketed : GradientSync::kPerParameter;
          },
          [](const Options& options) {
            return std::optional<std::string>(
                options.parallel.gradient_sync == GradientSync::kPerParameter ? "off" : "on");
          }};
}

// Comes after bucketing: on raises buckets to overlap, off leaves the choice of bucketing.
Setting<Options> overlap() {
  return {{"overlap", "on|off", "start a bucket's all-reduce inside backward; needs buckets"},
          [](Options& options, const std::string& text) {
            GradientSync& sync = options.parallel.gradient_sync;
            if (parse_on_off(text))
              sync = GradientSync::kOverlapped;
            else if (sync == GradientSync::kOverlapped)
              sync = GradientSync::kBucketed;
          },
          [](const Options& options) {
            return std::optional<std::string>(
                options.parallel.gradient_sync == GradientSync::kOverlapped ? "on" : "off");
          }};
}

constexpr NumberRange kBucketMb{.min = 0, .max = 65536, .min_bound = Bound::kExcluded};

Setting<Options> bucket_mb() {
  return {{"bucket-mb", "MB|auto",
           "size of a bucket; auto: from the model and the number of ranks, then between hosts "
           "from what is measured while training",
           "auto"},
          [](Options& options, const std::string& text) {
            options.parallel.bucket_mb.reset();
            if (text != "auto") options.parallel.bucket_mb = parse_number(text, kBucketMb);
          },
          [](const Options& options) {
            const auto& size = options.parallel.bucket_mb;
            return std::optional(size ? number_text(*size) : std::string("auto"));
          }};
}

Setting<Options> fused_optimizer() {
  using parallel::OptimizerKernel;
  return choice<Options, OptimizerKernel>(
      {"fused-optimizer", "on|off", "clip and update in one pass over flat memory"},
      {{"on", OptimizerKernel::kFused}, {"off", OptimizerKernel::kUnfused}},
      [](auto& o) -> auto& { return o.parallel.optimizer.kernel; });
}

Setting<Options> zero() {
  using parallel::StateSharing;
  return choice<Options, StateSharing>(
      {"zero", "0|1|auto",
       "1: the ranks of a node keep one copy of weights and optimizer state, and each updates its "
       "part; auto: where host ranks share a node"},
      {{"auto", StateSharing::kAuto}, {"0", StateSharing::kOff}, {"1", StateSharing::kOn}},
      [](auto& o) -> auto& { return o.parallel.state_sharing; });
}

Setting<Options> fused_ops() {
  return choice<Options, model::FusedOps>(
      {"fused-ops", "on|off", "own operators where they are faster; off: LibTorch's"},
      {{"on", model::FusedOps::kOn}, {"off", model::FusedOps::kOff}},
      [](auto& o) -> auto& { return o.model.config.fused_ops; });
}

Setting<Options> reduce_dtype() {
  return choice<Options, std::optional<core::DType>>(
      {"reduce-dtype", "fp32|bf16", "type in which gradients travel and are added",
       "the gradient's"},
      {{"fp32", core::DType::kFloat32}, {"bf16", core::DType::kBFloat16}},
      [](auto& o) -> auto& { return o.parallel.reduce_dtype; });
}

Setting<Options> optimizer_state_dtype() {
  return choice<Options, core::DType>(
      {"optimizer-state-dtype", "fp32|bf16",
       "type in which moments and momentum are kept; bf16 is rounded up or down by chance, with "
       "draws of --seed"},
      {{"fp32", core::DType::kFloat32}, {"bf16", core::DType::kBFloat16}},
      [](auto& o) -> auto& { return o.parallel.optimizer.state_dtype; });
}

Setting<Options> unused_parameters() {
  using parallel::UnusedParameters;
  return choice<Options, UnusedParameters>(
      {"unused-parameters", "error|allow", "what to do about a parameter that got no gradient"},
      {{"error", UnusedParameters::kError}, {"allow", UnusedParameters::kAllow}},
      [](auto& o) -> auto& { return o.parallel.unused_parameters; });
}

}  // namespace

SettingGroup<TrainOptions> toggle_settings() {
  return {
      "Optimisations",
      {baseline(), bucketing(), overlap(), bucket_mb(),
       number<Options>(
           {"first-bucket-mb", "MB",
            "size of the first bucket, so that communication starts early"},
           [](auto& o) -> auto& { return o.parallel.first_bucket_mb; }, kBucketMb),
       on_off<Options>(
           {"shared-memory", "on|off", "ranks of a node add gradients in place in shared memory"},
           [](auto& o) -> auto& { return o.comm.shared_memory; }),
       on_off<Options>(
           {"gradient-as-bucket-view", "on|off",
            "fused operators write the gradients of weights into their bucket; off: they are "
            "copied there"},
           [](auto& o) -> auto& { return o.parallel.gradient_as_bucket_view; }),
       reduce_dtype(), unused_parameters(), fused_optimizer(), optimizer_state_dtype(), zero(),
       fused_ops(),
       count<Options>(
           {"loader-workers", "N", "threads that read ahead; 0: the training thread reads"},
           [](auto& o) -> auto& { return o.data.loader_workers; }, {0, 256}),
       count<Options>(
           {"prefetch", "BATCHES", "batches ready ahead of the step; 0 only without workers"},
           [](auto& o) -> auto& { return o.data.prefetch; }, {0, 4096}),
       on_off<Options>(
           {"pin-memory", "on|off",
            "on a GPU: batches lie where its copy engine reads them itself"},
           [](auto& o) -> auto& { return o.data.pin_memory; }),
       on_off<Options>(
           {"flush-denormals", "on|off",
            "treat denormal numbers as zero (they are very slow on CPUs)"},
           [](auto& o) -> auto& { return o.flush_denormals; })}};
}

}  // namespace sidestream::launch::detail

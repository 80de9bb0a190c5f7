// Every optimisation with its off position.
//
// --overlap and --bucketing are two flags for one strategy: per parameter (both off), bucketed
// (--bucketing on), and overlapped (both on; overlap needs buckets). The parser passes them in only
// after it has settled which holds.
#include <fmt/format.h>

#include "launch/options/offload.hpp"
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
           "without GPUs from what is measured while training",
           "auto"},
          [](Options& options, const std::string& text) {
            options.parallel.bucket_mb.reset();
            if (text != "auto") options.parallel.bucket_mb = parse_number(text, kBucketMb, "auto");
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
       "1: each rank updates its part. The ranks of a node keep one copy of weights and optimizer "
       "state; others keep the state of their part only, and gather the weights. auto: the one "
       "copy, where host ranks share a node"},
      {{"auto", StateSharing::kAuto}, {"0", StateSharing::kOff}, {"1", StateSharing::kOn}},
      [](auto& o) -> auto& { return o.parallel.state_sharing; });
}

Setting<Options> fused_ops() {
  return choice<Options, model::FusedOps>(
      {"fused-ops", "on|off", "own operators where they are faster; off: LibTorch's"},
      {{"on", model::FusedOps::kOn}, {"off", model::FusedOps::kOff}},
      [](auto& o) -> auto& { return o.model.config.fused_ops; });
}

Setting<Options> recompute() {
  using model::Recompute;
  return choice<Options, Recompute>(
      {"recompute", "LEVEL",
       "what a GPT-2 block does not keep for backward but computes again: none, activations (of "
       "norms and GELU), mlp (its inside too), attention (its inside too), blocks (all but each "
       "block's input). Less memory, the same losses"},
      {{"none", Recompute::kNone},
       {"activations", Recompute::kActivations},
       {"mlp", Recompute::kMlp},
       {"attention", Recompute::kAttention},
       {"blocks", Recompute::kBlocks}},
      [](auto& o) -> auto& { return o.model.config.recompute; });
}

// One of two components each: what blocks keep, and optimizer state.
void set_offload(Options& options, const Offload& offload) {
  options.model.config.residuals =
      offload.residuals ? model::ResidualPlace::kHost : model::ResidualPlace::kDevice;
  options.parallel.optimizer.state_residence =
      offload.optimizer ? parallel::StateResidence::kHost : parallel::StateResidence::kDevice;
}

Setting<Options> offload() {
  return {{"offload", "WHAT",
           "what lies in pinned memory of a GPU's host and is copied beside the computation: none, "
           "residuals (inputs of blocks, until backward; with --recompute blocks), optimizer "
           "(master weights and moments, streamed through the update), or both with a comma. "
           "The same losses"},
          [](Options& options, const std::string& text) {
            set_offload(options, Offload::from_text(text));
          },
          [](const Options& options) { return std::optional(offload_of(options).text()); }};
}

// Of the operators that only GPUs have.
Setting<Options> of_gpus(Flag flag, Toggle ModelOptions::*wish, bool model::ModelConfig::*known) {
  const Names<Toggle> names = {{"auto", Toggle::kAuto}, {"on", Toggle::kOn}, {"off", Toggle::kOff}};
  const auto plain = choice<Options, Toggle>(
      std::move(flag), names, [=](auto& o) -> auto& { return o.model.*wish; });
  return {plain.flag,
          [=](Options& options, const std::string& text) {
            plain.set(options, text);
            options.model.config.*known = options.model.*wish == Toggle::kOn;
          },
          plain.get};
}

Setting<Options> packed_attention() {
  return of_gpus({"packed-attention", "auto|on|off",
                  "on a GPU, with bf16 or fp16: attention writes the gradients of queries, keys "
                  "and values side by side, so that they are not concatenated; auto: where cuDNN "
                  "has it for the model and the GPU"},
                 &ModelOptions::packed_attention, &model::ModelConfig::packed_attention);
}

Setting<Options> tune_products() {
  return of_gpus({"tune-products", "auto|on|off",
                  "on a GPU, with bf16 or fp16: each product of matrices gets the fastest of "
                  "cublasLt's algorithms, which the first step times; another run may choose "
                  "others, and differ in the last bits; auto: without --deterministic"},
                 &ModelOptions::tune_products, &model::ModelConfig::tune_products);
}

constexpr IntegerRange kLossChunks{1, 1 << 24};

Setting<Options> loss_chunks() {
  return {{"loss-chunks", "N|auto",
           "compute logits and their loss in N parts, forward and backward; 1: all at once; auto: "
           "parts of 64 MiB of logits, on a GPU of 1 GiB",
           "auto"},
          [](Options& options, const std::string& text) {
            options.model.config.loss_chunks =
                text == "auto" ? 0 : parse_integer(text, kLossChunks, "auto");
          },
          [](const Options& options) {
            const std::int64_t chunks = options.model.config.loss_chunks;
            return std::optional(chunks > 0 ? std::to_string(chunks) : std::string("auto"));
          }};
}

Setting<Options> reduce_dtype() {
  return choice<Options, std::optional<core::DType>>(
      {"reduce-dtype", "fp32|bf16", "type in which gradients travel and are added",
       fmt::format("the gradient's; of bf16 and fp16 with more than {} micro-steps fp32",
                   parallel::kMostNarrowMicroSteps)},
      {{"fp32", core::DType::kFloat32}, {"bf16", core::DType::kBFloat16}},
      [](auto& o) -> auto& { return o.parallel.reduce_dtype; });
}

using comm::nccl::CtaPolicy;

constexpr std::int64_t kMostCtas = 64;  // a device has no more channels than that

std::string ctas_text(const comm::nccl::Tuning& tuning) {
  if (tuning.ctas > 0) return std::to_string(tuning.ctas);
  switch (tuning.cta_policy) {
    case CtaPolicy::kDefault:
      return "auto";
    case CtaPolicy::kEfficiency:
      return "few";
    case CtaPolicy::kZero:
      return "none";
  }
  throw core::Error("no such CTA policy");
}

Setting<Options> nccl_ctas() {
  return {
      {"nccl-ctas", "N|auto|few|none",
       "compute units that a collective of NCCL takes from the kernels beside it; few: as many "
       "as cost little, none: copy engines where they can do it",
       "auto"},
      [](Options& options, const std::string& text) {
        comm::nccl::Tuning& tuning = options.comm.nccl;
        tuning.ctas = 0;
        tuning.cta_policy = text == "few"    ? CtaPolicy::kEfficiency
                            : text == "none" ? CtaPolicy::kZero
                                             : CtaPolicy::kDefault;
        const bool named = text == "auto" || text == "few" || text == "none";
        if (!named)
          tuning.ctas = static_cast<int>(parse_integer(text, {1, kMostCtas}, "auto, few, none"));
      },
      [](const Options& options) { return std::optional(ctas_text(options.comm.nccl)); }};
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

Setting<Options> late_loss() {
  return on_off<Options>(
      {"late-loss", "on|off",
       "on a GPU: read a step's loss while the next one runs; off: each step "
       "waits for the device"},
      [](auto& o) -> auto& { return o.late_loss; });
}

Setting<Options> pin_threads() {
  return on_off<Options>(
      {"pin-threads", "on|off", "host ranks that share cores each compute on their part"},
      [](auto& o) -> auto& { return o.pin_threads; });
}

Setting<Options> huge_pages() {
  return on_off<Options>(
      {"huge-pages", "on|off", "ask the system for huge pages, for tensors and shared memory"},
      [](auto& o) -> auto& { return o.comm.huge_pages; });
}

Setting<Options> keep_memory() {
  return on_off<Options>(
      {"keep-memory", "on|off",
       "keep all that a step frees for the next one; off: as much as the "
       "allocator keeps by itself"},
      [](auto& o) -> auto& { return o.keep_memory; });
}

Setting<Options> flush_denormals() {
  return on_off<Options>(
      {"flush-denormals", "on|off", "treat denormal numbers as zero (they are very slow on CPUs)"},
      [](auto& o) -> auto& { return o.flush_denormals; });
}

}  // namespace

SettingGroup<TrainOptions> toggle_settings() {
  return {
      "Optimisations",
      {baseline(),
       bucketing(),
       overlap(),
       bucket_mb(),
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
       nccl_ctas(),
       on_off<Options>(
           {"nccl-windows", "on|off",
            "register gradients with the peers, so that NCCL needs no copies of its own"},
           [](auto& o) -> auto& { return o.comm.nccl.windows; }),
       reduce_dtype(),
       unused_parameters(),
       fused_optimizer(),
       optimizer_state_dtype(),
       zero(),
       fused_ops(),
       packed_attention(),
       tune_products(),
       loss_chunks(),
       recompute(),
       offload(),
       on_off<Options>(
           {"cuda-graph", "on|off",
            "on a GPU: capture the whole step once, collectives included, and replay it as one "
            "launch; most for small models, whose kernels end sooner than the host starts them"},
           [](auto& o) -> auto& { return o.cuda_graph; }),
       count<Options>(
           {"loader-workers", "N", "threads that read ahead; 0: the training thread reads"},
           [](auto& o) -> auto& { return o.data.loader_workers; }, {0, 256}),
       count<Options>(
           {"prefetch", "BATCHES", "batches ready ahead of the step; 0: none, and no workers"},
           [](auto& o) -> auto& { return o.data.prefetch; }, {0, 4096}),
       on_off<Options>(
           {"pin-memory", "on|off",
            "on a GPU: batches lie where its copy engine reads them itself"},
           [](auto& o) -> auto& { return o.data.pin_memory; }),
       late_loss(),
       pin_threads(),
       huge_pages(),
       keep_memory(),
       flush_denormals()}};
}

}  // namespace sidestream::launch::detail

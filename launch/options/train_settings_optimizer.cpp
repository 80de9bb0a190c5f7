// Optimizer, schedule and evaluation.
#include <limits>

#include "core/optim/adamw.hpp"
#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;

Setting<Options> precision() {
  return choice<Options, Precision>(
      {"precision", "fp32|tf32|bf16|fp16",
       "of products, weights and gradients; bf16 and fp16 keep fp32 master weights; tf32 and fp16 "
       "only on a GPU"},
      {{"fp32", Precision::kFp32},
       {"tf32", Precision::kTf32},
       {"bf16", Precision::kBf16},
       {"fp16", Precision::kFp16}},
      [](auto& o) -> auto& { return o.precision; });
}

Setting<Options> loss_scale() {
  return {{"loss-scale", "dynamic|N",
           "fp16: the loss is multiplied with it before backward; dynamic: from 65536 on, half of "
           "it after a step whose gradients are not finite, whose update is left out",
           "dynamic"},
          [](Options& options, const std::string& text) {
            options.loss_scale.scale = DynamicLossScale{};
            if (text == "dynamic") return;
            options.loss_scale.scale =
                parse_number(text, {.min = optim::kLeastLossScale, .max = optim::kMostLossScale});
          },
          [](const Options& options) -> std::optional<std::string> {
            if (!options.loss_scale.scale) return std::nullopt;
            const std::optional<double> fixed = options.loss_scale.fixed();
            return fixed ? number_text(*fixed) : "dynamic";
          }};
}

constexpr std::int64_t kLongestInterval = 1'000'000'000;

Setting<Options> lr_schedule() {
  return choice<Options, std::string>(
      {"lr-schedule", "constant|linear|cosine|wsd",
       "shape after warm-up; wsd: constant, then linear at the end"},
      {{"constant", "constant"}, {"linear", "linear"}, {"cosine", "cosine"}, {"wsd", "wsd"}},
      [](auto& o) -> auto& { return o.schedule.kind; });
}

Setting<Options> algorithm() {
  using parallel::OptimizerAlgorithm;
  return choice<Options, OptimizerAlgorithm>(
      {"algorithm", "adamw|sgd", "AdamW with decoupled decay, or SGD with momentum"},
      {{"adamw", OptimizerAlgorithm::kAdamW}, {"sgd", OptimizerAlgorithm::kSgd}},
      [](auto& o) -> auto& { return o.parallel.optimizer.algorithm; });
}

constexpr NumberRange kBelowOne{.min = 0, .max = 1, .max_bound = Bound::kExcluded};

}  // namespace

SettingGroup<TrainOptions> optimizer_settings() {
  return {
      "Optimizer",
      {precision(), loss_scale(),
       optional_count<Options>(
           {"loss-scale-interval", "STEPS",
            "fp16: steps in a row with finite gradients after which a dynamic loss scale doubles",
            "2000"},
           [](auto& o) -> auto& { return o.loss_scale.interval; }, {1, kLongestInterval}),
       count<Options>(
           {"grad-accumulation", "N", "micro-steps whose gradients are added before an update"},
           [](auto& o) -> auto& { return o.parallel.grad_accumulation; }, {1, 1 << 20}),
       algorithm(),
       number<Options>({"lr", "RATE", "highest learning rate"},
                       [](auto& o) -> auto& { return o.schedule.lr; }, {.min = 0, .max = 1000}),
       number<Options>({"min-lr-ratio", "RATIO",
                        "what the learning rate would be after the last step, over the highest"},
                       [](auto& o) -> auto& { return o.schedule.min_lr_ratio; },
                       {.min = 0, .max = 1}),
       lr_schedule(),
       count<Options>({"warmup-steps", "STEPS", "steps in which the rate rises to its highest"},
                      [](auto& o) -> auto& { return o.schedule.warmup_steps; }, {}),
       number<Options>({"weight-decay", "X", "decay of parameters with two or more dimensions"},
                       [](auto& o) -> auto& { return o.parallel.optimizer.weight_decay; },
                       {.min = 0, .max = 100}),
       number<Options>(
           {"beta1", "X", "AdamW: decay of the first moment"},
           [](auto& o) -> auto& { return o.parallel.optimizer.beta1; }, kBelowOne),
       number<Options>(
           {"beta2", "X", "AdamW: decay of the second moment"},
           [](auto& o) -> auto& { return o.parallel.optimizer.beta2; }, kBelowOne),
       number<Options>({"eps", "X", "AdamW: added to the root of the second moment"},
                       [](auto& o) -> auto& { return o.parallel.optimizer.eps; },
                       {.min = optim::kSmallestEps, .max = 1}),
       number<Options>(
           {"momentum", "X", "SGD: momentum"},
           [](auto& o) -> auto& { return o.parallel.optimizer.momentum; }, kBelowOne),
       number<Options>({"grad-clip", "NORM", "largest global norm of the gradient; 0: no clipping"},
                       [](auto& o) -> auto& { return o.parallel.optimizer.grad_clip; }, {})}};
}

SettingGroup<TrainOptions> evaluation_settings() {
  return {
      "Evaluation",
      {count<Options>({"eval-every", "STEPS", "validation loss every so many steps; 0: never"},
                      [](auto& o) -> auto& { return o.evaluation.every; }, {}),
       count<Options>({"eval-tokens", "TOKENS", "tokens of an evaluation, over all ranks"},
                      [](auto& o) -> auto& { return o.evaluation.tokens; }, {1}),
       number<Options>({"target-val-loss", "LOSS",
                        "stop once the validation loss is this low, and report the time", "none"},
                       [](auto& o) -> auto& { return o.evaluation.target_val_loss; },
                       {.min = 0, .max = 1000, .min_bound = Bound::kExcluded})}};
}

}  // namespace sidestream::launch::detail

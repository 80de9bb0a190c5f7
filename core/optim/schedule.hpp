// Learning-rate schedules as pure functions of the step.
#pragma once

#include <cstdint>
#include <string_view>

namespace sidestream::optim {

enum class ScheduleKind { kConstant, kLinear, kCosine, kWsd };

// "constant", "linear", "cosine", "wsd". Throws ConfigError that lists them for anything else.
ScheduleKind parse_schedule_kind(std::string_view text);
std::string_view name_of(ScheduleKind kind);

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kCosine;
  double lr = 6e-4;           // the highest
  double min_lr_ratio = 0.1;  // lowest over highest, reached after the last step
  std::int64_t steps = 0;     // of the whole run
  std::int64_t warmup_steps = 0;
  double decay_fraction = 0.2;  // wsd only: part of all steps that decays

  // Throws ConfigError that names the flag, the range and the value.
  void validate() const;
};

// The learning rate of a step; steps count from 1. With W = warmup_steps and S = steps:
//   s <= W:          lr s / W                                            (llm.c, torchtitan)
//   then, p being    (s - 1 - A) / (S - A), kept in [0, 1]:
//     constant       lr
//     linear         lr (m + (1 - m) (1 - p)),               A = W
//     cosine         lr (m + (1 - m) (1 + cos(pi p)) / 2),   A = W       (nanoGPT, llm.c)
//     wsd            as linear,                              A = max(W, S - round(decay_fraction
//     S))  (torchtitan)
// where m = min_lr_ratio. The first step after warm-up and the first step of a decay thus have the
// highest rate. Throws Error for a step below 1.
double learning_rate(const ScheduleConfig& config, std::int64_t step);

}  // namespace sidestream::optim

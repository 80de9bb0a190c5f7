#include "core/optim/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "core/base/error.hpp"
#include "core/optim/check.hpp"

namespace sidestream::optim {
namespace {

struct NamedKind {
  std::string_view name;
  ScheduleKind kind;
};

constexpr std::array<NamedKind, 4> kKinds{{{"constant", ScheduleKind::kConstant},
                                           {"linear", ScheduleKind::kLinear},
                                           {"cosine", ScheduleKind::kCosine},
                                           {"wsd", ScheduleKind::kWsd}}};

// Steps before the decay begins.
std::int64_t steady_steps(const ScheduleConfig& config) {
  if (config.kind != ScheduleKind::kWsd) return config.warmup_steps;
  const auto decay_steps = std::llround(config.decay_fraction * static_cast<double>(config.steps));
  return std::max<std::int64_t>(config.warmup_steps, config.steps - decay_steps);
}

double progress(const ScheduleConfig& config, std::int64_t step) {
  const std::int64_t steady = steady_steps(config);
  if (step - 1 < steady) return 0;
  if (config.steps <= steady) return 1;
  return std::min(
      1.0, static_cast<double>(step - 1 - steady) / static_cast<double>(config.steps - steady));
}

// From 1 at the start of the decay to 0 after the last step.
double shape(ScheduleKind kind, double progress) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kLinear:
    case ScheduleKind::kWsd:
      return 1 - progress;
    case ScheduleKind::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  throw core::Error("learning_rate: unknown schedule " + std::to_string(static_cast<int>(kind)));
}

void require_not_negative(std::string_view flag, std::int64_t value) {
  if (value >= 0) return;
  throw core::ConfigError(std::string(flag) + ": expected 0 or more, found " +
                          std::to_string(value));
}

}  // namespace

ScheduleKind parse_schedule_kind(std::string_view text) {
  for (const NamedKind& named : kKinds) {
    if (named.name == text) return named.kind;
  }
  throw core::ConfigError("--lr-schedule: expected constant, linear, cosine or wsd, found '" +
                          std::string(text) + "'");
}

std::string_view name_of(ScheduleKind kind) {
  for (const NamedKind& named : kKinds) {
    if (named.kind == kind) return named.name;
  }
  throw core::Error("name_of: unknown schedule " + std::to_string(static_cast<int>(kind)));
}

void ScheduleConfig::validate() const {
  require_in_range("--lr", lr, {.low = 0, .high = std::numeric_limits<float>::max()});
  require_in_range("--min-lr-ratio", min_lr_ratio, {.low = 0, .high = 1});
  require_in_range("decay fraction", decay_fraction, {.low = 0, .high = 1});
  require_not_negative("--steps", steps);
  require_not_negative("--warmup-steps", warmup_steps);
}

double learning_rate(const ScheduleConfig& config, std::int64_t step) {
  if (step < 1)
    throw core::Error("learning_rate: steps count from 1, found step " + std::to_string(step));
  if (step <= config.warmup_steps) {
    return config.lr * static_cast<double>(step) / static_cast<double>(config.warmup_steps);
  }
  const double ratio = shape(config.kind, progress(config, step));
  return config.lr * (config.min_lr_ratio + (1 - config.min_lr_ratio) * ratio);
}

}  // namespace sidestream::optim

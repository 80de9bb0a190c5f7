// Which steps of this run belong to a window of the profiler.
#pragma once

#include <cstdint>
#include <optional>

#include "launch/options/record_options.hpp"

namespace sidestream::launch {

class ProfilePlan {
 public:
  // first_step: the first that this process trains; the schedule counts from there.
  ProfilePlan(const std::optional<ProfileSchedule>& schedule, std::int64_t first_step)
      : schedule_(schedule), first_step_(first_step) {}

  enum class Part { kNothing, kWarmUp, kActive };
  Part part_of(std::int64_t step) const {
    if (!schedule_ || step < first_step_) return Part::kNothing;
    const std::int64_t length = schedule_->wait + schedule_->warmup + schedule_->active;
    const std::int64_t cycle = (step - first_step_) / length;
    if (schedule_->repeat > 0 && cycle >= schedule_->repeat) return Part::kNothing;
    const std::int64_t place = (step - first_step_) % length;
    if (place < schedule_->wait) return Part::kNothing;
    return place < schedule_->wait + schedule_->warmup ? Part::kWarmUp : Part::kActive;
  }
  std::optional<std::int64_t> first_active_step() const {
    if (!schedule_) return std::nullopt;
    return first_step_ + schedule_->wait + schedule_->warmup;
  }
  bool begins(std::int64_t step, Part part) const {
    return part_of(step) == part && part_of(step - 1) != part;
  }
  // Windows may follow each other without a step between them.
  bool begins_window(std::int64_t step) const {
    return part_of(step) == Part::kActive && (part_of(step - 1) != Part::kActive || is_edge(step));
  }
  bool ends_window(std::int64_t step) const {
    return part_of(step) == Part::kActive &&
           (part_of(step + 1) != Part::kActive || is_edge(step + 1));
  }

 private:
  bool is_edge(std::int64_t step) const {
    const std::int64_t length = schedule_->wait + schedule_->warmup + schedule_->active;
    return (step - first_step_) % length == 0;
  }

  std::optional<ProfileSchedule> schedule_;
  std::int64_t first_step_;
};

}  // namespace sidestream::launch

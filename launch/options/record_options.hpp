// What a run records about itself: --record, --sample-hz, --profile and its companions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sidestream::launch {

// Which steps the profiler sees, as in torch.profiler.schedule: `wait` steps without it, `warmup`
// steps in which it runs and is not kept, `active` steps that are kept, and again.
struct ProfileSchedule {
  std::int64_t wait = 0;
  std::int64_t warmup = 1;
  std::int64_t active = 1;
  std::int64_t repeat = 1;  // 0: until the end of the run
};

// "wait=1,warmup=1,active=3,repeat=2", in any order; what is left out keeps its default, but for
// active. Throws ConfigError.
ProfileSchedule parse_profile_schedule(std::string_view text);
std::string profile_schedule_text(const ProfileSchedule& schedule);

// Which steps the light recorder keeps. Every second one shows what recording costs: its steps
// stand beside others of the same run.
enum class RecordedSteps { kNone, kAll, kEverySecond };

struct RecordOptions {
  RecordedSteps record = RecordedSteps::kNone;
  int sample_hz = 0;  // samples of the system a second; 0: none
  std::optional<ProfileSchedule> profile = {};
  bool shapes = false;
  bool memory = false;
  bool stacks = false;
  bool flops = false;
  std::string modules = "off";  // off, on (every layer), or a pattern of layer names

  bool wants_modules() const { return modules != "off"; }
  bool every_second_step() const { return record == RecordedSteps::kEverySecond; }
  // The light recorder runs from the first step to the last; samples alone need it too.
  bool whole_run() const { return record != RecordedSteps::kNone || (sample_hz > 0 && !profile); }
  bool any() const { return whole_run() || sample_hz > 0 || profile.has_value(); }
};

}  // namespace sidestream::launch

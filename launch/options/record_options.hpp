// What a run records about itself: --record, --record-ranges, --sample-hz, --profile and its
// companions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sidestream::launch {

// Of --record-ranges; the largest is 768 MiB a thread, once they are used.
inline constexpr std::int64_t kLeastRangesPerThread = 1 << 10;
inline constexpr std::int64_t kMostRangesPerThread = std::int64_t{1} << 24;

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
  std::int64_t ranges_per_thread = std::int64_t{1} << 16;  // raised to a power of two
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

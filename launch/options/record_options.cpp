#include "launch/options/record_options.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "launch/options/value_text.hpp"

namespace sidestream::launch {
namespace {

std::int64_t& part_named(ProfileSchedule& schedule, std::string_view name) {
  if (name == "wait") return schedule.wait;
  if (name == "warmup") return schedule.warmup;
  if (name == "active") return schedule.active;
  if (name == "repeat") return schedule.repeat;
  throw core::ConfigError(
      fmt::format("expected wait, warmup, active and repeat, found '{}'", name));
}

}  // namespace

ProfileSchedule parse_profile_schedule(std::string_view text) {
  ProfileSchedule schedule;
  bool has_active = false;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      throw core::ConfigError(
          fmt::format("expected wait=N,warmup=N,active=N,repeat=N, found '{}'", part));
    }
    const std::string_view name = part.substr(0, equals);
    std::int64_t& value = part_named(schedule, name);
    try {
      value = parse_integer(part.substr(equals + 1),
                            {.min = name == "active" ? 1 : 0, .max = 1'000'000'000});
    } catch (const core::ConfigError& error) {
      throw core::ConfigError(fmt::format("{}: {}", name, error.what()));
    }
    has_active = has_active || name == "active";
  }
  if (!has_active)
    throw core::ConfigError("expected active=N, the steps to keep, for example active=3");
  return schedule;
}

std::string profile_schedule_text(const ProfileSchedule& schedule) {
  return fmt::format("wait={},warmup={},active={},repeat={}", schedule.wait, schedule.warmup,
                     schedule.active, schedule.repeat);
}

}  // namespace sidestream::launch

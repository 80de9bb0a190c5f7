#include "launch/options/single_run_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

constexpr std::array kSingleRunSettings = {
    SingleRunSetting{
        .name = "resume", .off = "none", .why = "every run starts from the beginning", .asked = ""},
    SingleRunSetting{.name = "record",
                     .off = "off",
                     .why = "timed runs are not recorded",
                     .asked = "--record on"},
    SingleRunSetting{.name = "sample-hz",
                     .off = "0",
                     .why = "timed runs are not sampled",
                     .asked = "--sample-hz 20"},
    SingleRunSetting{.name = "profile",
                     .off = "",
                     .why = "timed runs would pay for the profiler. Take the line out, and those "
                            "of profile-... that are on",
                     .asked = ""},
    SingleRunSetting{.name = "inject",
                     .off = "",
                     .why = "the faults would be planted in every run that is timed. Take the "
                            "line out",
                     .asked = "--inject ..."}};

std::string with_remedy(std::string text, const std::string& remedy) {
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace

std::span<const SingleRunSetting> single_run_settings() { return kSingleRunSettings; }

const Given* line_of_single_run(const std::vector<Given>& of_file,
                                const SingleRunSetting& setting) {
  const auto found = std::find_if(of_file.begin(), of_file.end(),
                                  [&](const Given& one) { return one.name == setting.name; });
  const bool is_other = found != of_file.end() && found->value != setting.off;
  return is_other ? &*found : nullptr;
}

std::string not_taken_over(const Given& line, const SingleRunSetting& setting,
                           const std::string& by, const std::string& remedy) {
  return with_remedy(
      fmt::format("{} = {} is not taken over{}: {}", line.origin, line.value, by, setting.why),
      remedy);
}

void refuse_line(const Given& line, const SingleRunSetting& setting, const std::string& remedy) {
  throw core::ConfigError(with_remedy(fmt::format("{}: {}", line.origin, setting.why), remedy));
}

}  // namespace sidestream::launch

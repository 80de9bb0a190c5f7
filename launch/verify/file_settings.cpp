#include "launch/verify/file_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "launch/options/config_file.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

struct Replaced {
  std::string_view name;
  std::string_view value;  // of every run
  const char* why;
};
constexpr std::array kReplaced = {
    Replaced{"resume", "none", "every run starts from the beginning"},
    Replaced{"record", "off", "timed runs are not recorded; --common \"--record on\" does it"},
    Replaced{"sample-hz", "0",
             "timed runs are not sampled; --common \"--sample-hz 20\" does it for all runs"}};

struct RefusedOfFile {
  std::string_view name;
  const char* what_to_do;
};
constexpr std::array kRefusedOfFile = {
    RefusedOfFile{"profile",
                  "timed runs would pay for the profiler. Take the line out, and those of "
                  "profile-... that are on: a profiled run of each side follows the timed ones"},
    RefusedOfFile{"inject",
                  "the faults would be planted in every run of both sides. Take the line out; "
                  "--base \"--inject ...\" plants them in one side"}};

const Given* given_in_file(const VerifyOptions& options, std::string_view name) {
  const auto found = std::find_if(options.of_file.begin(), options.of_file.end(),
                                  [&](const Given& one) { return one.name == name; });
  return found == options.of_file.end() ? nullptr : &*found;
}

// Empty: the file has nothing that would have to be replaced.
const Given* replaced_in_file(const VerifyOptions& options, const Replaced& one) {
  const Given* given = given_in_file(options, one.name);
  return given != nullptr && given->value != one.value ? given : nullptr;
}

std::string flag_of(std::string_view name) { return fmt::format("--{}", name); }

}  // namespace

void read_file_settings(VerifyOptions& options) {
  options.of_file = read_config_file(options.config, train_flags());
  for (const RefusedOfFile& one : kRefusedOfFile) {
    if (const Given* given = given_in_file(options, one.name))
      throw core::ConfigError(fmt::format("{}: {}", given->origin, one.what_to_do));
  }
}

std::vector<std::string> remarks_on_file(const VerifyOptions& options) {
  std::vector<std::string> remarks;
  for (const Replaced& one : kReplaced) {
    if (const Given* given = replaced_in_file(options, one))
      remarks.push_back(
          fmt::format("{} = {} is not taken over: {}", given->origin, given->value, one.why));
  }
  return remarks;
}

std::vector<std::string> flags_over_file(const VerifyOptions& options,
                                         const std::vector<std::string>& flags) {
  std::vector<std::string> words;
  for (const Replaced& one : kReplaced) {
    const std::string flag = flag_of(one.name);
    if (replaced_in_file(options, one) == nullptr || names_flag(flags, flag)) continue;
    words.push_back(flag);
    words.emplace_back(one.value);
  }
  return words;
}

bool is_set(const VerifyOptions& options, const std::vector<std::string>& flags,
            std::string_view name) {
  return given_in_file(options, name) != nullptr || names_flag(flags, flag_of(name));
}

bool names_flag(const std::vector<std::string>& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::string_view(word).substr(0, word.find('=')) == flag;
  });
}

}  // namespace sidestream::launch

#include "launch/verify/file_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launch/options/config_file.hpp"
#include "launch/options/single_run_settings.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

std::string flag_of(std::string_view name) { return fmt::format("--{}", name); }

std::string remedy_of(const SingleRunSetting& setting) {
  if (setting.name == "profile") return "a profiled run of each side follows the timed ones";
  if (setting.name == "inject")
    return fmt::format("--base \"{}\" plants them in one side", setting.asked);
  return setting.asked.empty() ? "" : fmt::format("--common \"{}\" does it", setting.asked);
}

}  // namespace

void read_file_settings(VerifyOptions& options) {
  options.of_file = read_config_file(options.config, train_flags());
  for (const SingleRunSetting& one : single_run_settings()) {
    const Given* line = line_of_single_run(options.of_file, one);
    if (line != nullptr && one.is_refused()) refuse_line(*line, one, remedy_of(one));
  }
}

std::vector<std::string> remarks_on_file(const VerifyOptions& options) {
  std::vector<std::string> remarks;
  for (const SingleRunSetting& one : single_run_settings()) {
    const Given* line = line_of_single_run(options.of_file, one);
    const std::string flag = flag_of(one.name);
    const bool base = names_flag(options.base, flag), fresh = names_flag(options.fresh, flag);
    if (line == nullptr || names_flag(options.common, flag) || (base && fresh)) continue;
    const char* const by = base ? " by the new side" : fresh ? " by the base side" : "";
    remarks.push_back(not_taken_over(*line, one, by, remedy_of(one)));
  }
  return remarks;
}

std::vector<std::string> flags_over_file(const VerifyOptions& options,
                                         const std::vector<std::string>& flags) {
  std::vector<std::string> words;
  for (const SingleRunSetting& one : single_run_settings()) {
    const std::string flag = flag_of(one.name);
    const bool is_replaced =
        !one.is_refused() && line_of_single_run(options.of_file, one) != nullptr;
    if (!is_replaced || names_flag(flags, flag)) continue;
    words.push_back(flag);
    words.emplace_back(one.off);
  }
  return words;
}

bool is_set(const VerifyOptions& options, const std::vector<std::string>& flags,
            std::string_view name) {
  return std::any_of(options.of_file.begin(), options.of_file.end(),
                     [&](const Given& one) { return one.name == name; }) ||
         names_flag(flags, flag_of(name));
}

bool names_flag(const std::vector<std::string>& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::string_view(word).substr(0, word.find('=')) == flag;
  });
}

}  // namespace sidestream::launch

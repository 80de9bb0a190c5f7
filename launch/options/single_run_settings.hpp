// What a configuration file says about one run alone: such a file is often the config.cfg of a run
// that was resumed, recorded or profiled, or that had faults planted. Commands that time runs take
// none of that over.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/options/flag.hpp"

namespace sidestream::launch {

struct SingleRunSetting {
  std::string_view name;
  std::string_view off;    // what timed runs are told in its place; empty: no flag turns it off
  std::string_view why;    // they do not take it over
  std::string_view asked;  // the flag that has it all the same; empty: none

  bool is_refused() const noexcept { return off.empty(); }
};

std::span<const SingleRunSetting> single_run_settings();

// The line that timed runs do not take over; null where the file says nothing of it, or the same.
const Given* line_of_single_run(const std::vector<Given>& of_file, const SingleRunSetting& setting);

// "FILE:3: record = on is not taken over: ...", for who looks at what is timed. `by` names who does
// not, where it is not all (" by the base side"); `remedy` is how to have it, where there is a way.
std::string not_taken_over(const Given& line, const SingleRunSetting& setting,
                           const std::string& by, const std::string& remedy);

// Throws ConfigError with the line and what to do; `remedy` as above.
[[noreturn]] void refuse_line(const Given& line, const SingleRunSetting& setting,
                              const std::string& remedy);

}  // namespace sidestream::launch

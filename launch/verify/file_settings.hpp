// What the configuration file of a verification says about single runs: such a file is often the
// config.cfg of a run that was resumed or recorded, and runs that are compared take none of that
// over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/options/verify_options.hpp"

namespace sidestream::launch {

// Into options.of_file. Throws ConfigError for a file that `train` would not read, and for what no
// timed run may do and no flag turns off: it names the line, and what to do.
void read_file_settings(VerifyOptions& options);

// A line for each setting that runs, or those of one side, do not take over: which, why, and how to
// have it all the same. Not for what flags of both sides say themselves.
std::vector<std::string> remarks_on_file(const VerifyOptions& options);

// What a run with these flags is told in place of what the file says. Flags of a side stay.
std::vector<std::string> flags_over_file(const VerifyOptions& options,
                                         const std::vector<std::string>& flags);

// Whether the file or these flags say it: "target-val-loss".
bool is_set(const VerifyOptions& options, const std::vector<std::string>& flags,
            std::string_view name);

// As --name or --name=value.
bool names_flag(const std::vector<std::string>& words, std::string_view flag);

}  // namespace sidestream::launch

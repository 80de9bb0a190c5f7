// Configuration files: lines "key = value", keys as the flags are called, '#' starts a comment at
// the beginning of a line or after a space. A value in double quotes may hold a '#' or spaces at
// its ends.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "launch/options/flag.hpp"

namespace sidestream::launch {

constexpr std::size_t kConfigFileLimitBytes = std::size_t{1} << 20;

// The values of a file in the order of its lines. Throws ConfigError "FILE:LINE: ..." for a line
// that is no assignment, an unknown key (with the nearest one), a key that belongs on the command
// line, a duplicate key, and for a file that cannot be read or is larger than
// kConfigFileLimitBytes.
std::vector<Given> read_config_file(const std::filesystem::path& path,
                                    const std::vector<FlagGroup>& groups);

// The same for text in memory; `name` stands for the file in messages.
std::vector<Given> parse_config_text(std::string_view text, const std::string& name,
                                     const std::vector<FlagGroup>& groups);

// value as it has to be written to read back the same. Throws ConfigError for one that no line can
// hold.
std::string config_value_text(const std::string& value);

}  // namespace sidestream::launch

#include "launch/trace/output_check.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// Files of a run directory that a report is made of.
bool is_read(const fs::path& file) {
  constexpr std::array<std::string_view, 4> kOfRuns = {"clock.json", "config.cfg", "metrics.jsonl",
                                                       "run.json"};
  const std::string name = file.filename().string();
  return std::find(kOfRuns.begin(), kOfRuns.end(), name) != kOfRuns.end() ||
         trace::is_trace_name(name);
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const fs::path inside = fs::canonical(file), outside = fs::canonical(folder);
  return std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end()).first ==
         outside.end();
}

bool would_replace(const fs::path& output, const fs::path& input) {
  if (!fs::exists(input)) return false;
  if (!fs::is_directory(input)) return fs::equivalent(output, input);
  return is_read(output) && lies_in(output, input);
}

void check_output(const fs::path& output, const std::vector<fs::path>& inputs) {
  if (output == "-")
    throw core::ConfigError(
        "-: expected the name of a file; what is to go to standard output goes to /dev/stdout");
  if (fs::is_directory(output))
    throw core::ConfigError(output.string() + ": expected the name of a file, found a folder");
  if (!fs::exists(output)) return;
  for (const fs::path& input : inputs) {
    if (would_replace(output, input))
      throw core::ConfigError(output.string() +
                              " is read, and would be written over: give the output another name");
  }
}

}  // namespace

void check_outputs(const std::vector<fs::path>& outputs, const std::vector<fs::path>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const fs::path& output = outputs[i];
    if (output.empty()) continue;
    if (std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), output) !=
        outputs.begin() + static_cast<std::ptrdiff_t>(i))
      throw core::ConfigError(output.string() + " is given for two outputs");
    try {
      check_output(output, inputs);
    } catch (const fs::filesystem_error& error) {
      throw core::ConfigError(output.string() + ": " + error.code().message());
    }
  }
}

}  // namespace sidestream::launch

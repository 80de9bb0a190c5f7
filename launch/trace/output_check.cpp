#include "launch/trace/output_check.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/path_inside.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// What a run keeps beside its traces: reports are made of some of it, the next start of the rest.
bool is_record(const fs::path& file) {
  constexpr std::array<std::string_view, 8> kNames = {
      "clock.json", "config.cfg",   "ettr.jsonl",    "incidents.jsonl",
      "lock",       "machine.json", "metrics.jsonl", "run.json"};
  return std::find(kNames.begin(), kNames.end(), file.filename().string()) != kNames.end() ||
         std::find(file.begin(), file.end(), "checkpoints") != file.end();
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  return core::is_inside(fs::canonical(file), fs::canonical(folder));
}

// Records lie beside a trace and in the run directory above it, whatever of the run is given.
bool is_record_of(const fs::path& output, const fs::path& input) {
  if (!is_record(output)) return false;
  const auto run = report::run_directory_of(input);
  return lies_in(output, fs::is_directory(input) ? input : fs::absolute(input).parent_path()) ||
         (run && lies_in(output, *run));
}

bool would_replace(const fs::path& output, const fs::path& input) {
  if (!fs::exists(input)) return false;
  if (is_record_of(output, input)) return true;
  if (!fs::is_directory(input)) return fs::equivalent(output, input);
  return trace::is_trace_name(output.filename().string()) && lies_in(output, input);
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

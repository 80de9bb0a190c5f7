// What `sidestream-trace` can be told: its commands and their flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

inline constexpr int kTableRows = 20;

struct ReportOptions {
  std::vector<std::filesystem::path> inputs = {};
  std::filesystem::path json = {};              // empty: none
  std::filesystem::path html = {};              // empty: none
  std::filesystem::path csv = {};               // a folder; empty: none
  std::vector<std::filesystem::path> ncu = {};  // CSV of Nsight Compute; empty: none
  bool quiet = false;                           // no text
  std::optional<double> require_mfu_pct = {};
  std::optional<StepRange> require_mfu_steps = {};  // empty: all
  std::vector<std::string> tables = {};  // printed instead of the report; empty: the report
  std::optional<int> rows = {};          // of each of these tables; empty: kTableRows
  std::optional<int> threads = {};       // empty: every core
};

struct MergeOptions {
  std::vector<std::filesystem::path> inputs = {};
  std::filesystem::path output = {};
  std::vector<int> ranks = {};          // empty: all
  std::optional<StepRange> steps = {};  // empty: all
  std::optional<int> threads = {};
};

enum class TraceCommand { kReport, kMerge, kCompare, kRoofline };

struct TraceInvocation {
  enum class Action { kRun, kPrintText } action = Action::kRun;
  TraceCommand command = TraceCommand::kReport;
  std::vector<std::string> arguments = {};
  std::string text = "";  // kPrintText: print it and end with success
};

// The first word, or which help. Throws ConfigError.
TraceInvocation parse_trace_invocation(int argc, const char* const* argv,
                                       const std::string& version_text);

// Throw ConfigError.
ReportOptions parse_report_options(const std::vector<std::string>& arguments);
MergeOptions parse_merge_options(const std::vector<std::string>& arguments);

}  // namespace sidestream::launch

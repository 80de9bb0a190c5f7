#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/standard_output.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/verify/trace_comparability.hpp"
#include "profiling/verify/verification_report.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

bool has_record(const fs::path& path) { return core::is_there(path / "metrics.jsonl"); }

// A run directory may have no traces: its record is enough then.
std::unique_ptr<ExaminedRun> examine(const fs::path& path, const CompareOptions& options) {
  if (has_record(path) && !core::is_there(path / "trace")) return nullptr;
  return std::make_unique<ExaminedRun>(std::vector{path},
                                       ExaminedRun::Settings{.threads = options.threads});
}

void refuse(const std::string& what, const CompareOptions& options) {
  if (!what.empty() && !options.force)
    throw core::ConfigError("the runs cannot be compared: " + what +
                            ". --force compares them anyway");
}

using Examined = std::vector<std::unique_ptr<ExaminedRun>>;

double step_ms_of(const ExaminedRun& run, const fs::path& path) {
  const auto step = report::median_step_ms(run.analysis().ranks);
  if (!step)
    throw core::DataError(
        fmt::format("{}: expected ranges named ProfilerStep#N, found none: there "
                    "are no steps to compare",
                    path.string()));
  if (*step <= 0)
    throw core::DataError(
        fmt::format("{}: expected steps that take time, found ranges ProfilerStep#N of length 0",
                    path.string()));
  return *step;
}

// The same capture twice is no second block: it would have no scatter.
void refuse_repeated(const std::vector<fs::path>& paths, const Examined& runs) {
  std::map<std::string, fs::path> seen;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    const auto [before, is_new] = seen.emplace(verify::identity_of(runs[i]->analysis()), paths[i]);
    if (!is_new)
      throw core::ConfigError(
          fmt::format("{} and {} are the same capture: every block needs a run of its own",
                      before->second.string(), paths[i].string()));
  }
}

// Of run directories that have no more than traces and their configuration.
std::vector<verify::Difference> config_differences(const fs::path& base, const fs::path& fresh) {
  const fs::path left = base / "config.cfg", right = fresh / "config.cfg";
  if (!core::is_there(left) || !core::is_there(right)) return {};
  return verify::differences_of(verify::read_config(left), verify::read_config(right));
}

verify::Verification by_traces(const CompareOptions& options, const Examined& base,
                               const Examined& fresh, const verify::Settings& settings) {
  refuse_repeated(options.base, base);
  refuse_repeated(options.fresh, fresh);
  std::vector<verify::BlockRow> blocks;
  std::vector<verify::Difference> differences;
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (!base[i] || !fresh[i])
      throw core::ConfigError("one side has run directories and the other has traces only");
    auto found = verify::differences_of(base[i]->analysis(), fresh[i]->analysis());
    verify::add_new_ones(config_differences(options.base[i], options.fresh[i]), found);
    refuse(verify::refusal_text(found), options);
    verify::add_new_ones(found, differences);
    blocks.push_back({.block = static_cast<int>(i) + 1,
                      .base_ms = step_ms_of(*base[i], options.base[i]),
                      .fresh_ms = step_ms_of(*fresh[i], options.fresh[i])});
  }
  verify::Verification result = verify::verify_step_times(std::move(blocks), settings);
  result.differences = std::move(differences);
  return result;
}

// Its traces may be good where its record is not.
verify::RecordedRun record_of(const fs::path& path) {
  try {
    return verify::read_recorded_run(path);
  } catch (const core::DataError& error) {
    if (!core::is_there(path / "trace")) throw;
    throw core::DataError(fmt::format("{}. To compare by the traces alone, give their folder: {}",
                                      error.what(), (path / "trace").string()));
  }
}

std::vector<verify::RecordedRun> records_of(const std::vector<fs::path>& paths) {
  std::vector<verify::RecordedRun> runs;
  for (const fs::path& path : paths) runs.push_back(record_of(path));
  return runs;
}

struct Records {
  std::vector<verify::RecordedRun> base, fresh;
};

Records read_records(const CompareOptions& options) {
  Records records{records_of(options.base), records_of(options.fresh)};
  verify::refuse_repeated(records.base);
  verify::refuse_repeated(records.fresh);
  for (std::size_t i = 0; i < records.base.size(); ++i)
    refuse(verify::refusal_text(verify::differences_of(records.base[i], records.fresh[i])),
           options);
  return records;
}

// Steps that metrics.jsonl has behind the warm-up, on both sides.
bool are_logged(const Records& records, int warm_up) {
  const auto has_steps = [&](const verify::RecordedRun& run) {
    return run.steps.size() > static_cast<std::size_t>(warm_up);
  };
  return std::all_of(records.base.begin(), records.base.end(), has_steps) &&
         std::all_of(records.fresh.begin(), records.fresh.end(), has_steps);
}

bool all_have_traces(const Examined& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const auto& run) {
    return run && report::median_step_ms(run->analysis().ranks);
  });
}

void write_page(const CompareOptions& options, const Examined& base, const Examined& fresh,
                const std::string& comparison) {
  const auto json = nlohmann::ordered_json::parse(comparison);
  page::DocumentParts parts{
      .title = fmt::format("{} against {}", folder_name(options.fresh.front()),
                           folder_name(options.base.front())),
      .verification = json.at("verification"),
      .trace_change = json.at("trace")};
  add_sides(parts, base.front().get(), fresh.front().get());
  core::write_file_atomically(options.html, page::html_page(page::document_of(std::move(parts))));
}

nlohmann::ordered_json report_of(ExaminedRun* run) {
  return run ? run->report() : nlohmann::ordered_json();
}

// With the report.json of the first run of each side, which the page is drawn from.
std::string with_reports(const std::string& comparison, const Examined& base,
                         const Examined& fresh) {
  auto json = nlohmann::ordered_json::parse(comparison);
  json["reports"] = {{"base", report_of(base.front().get())},
                     {"new", report_of(fresh.front().get())}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string joined(const std::vector<fs::path>& paths) {
  std::vector<std::string> words;
  for (const fs::path& path : paths) words.push_back(path.string());
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

int run_compare(const CompareOptions& options) {
  check_outputs({options.json, options.html}, options.base);
  check_outputs({options.json, options.html}, options.fresh);
  Examined base, fresh;
  for (const fs::path& path : options.base) base.push_back(examine(path, options));
  for (const fs::path& path : options.fresh) fresh.push_back(examine(path, options));
  bool recorded = std::all_of(options.base.begin(), options.base.end(), has_record) &&
                  std::all_of(options.fresh.begin(), options.fresh.end(), has_record);
  const Records records = recorded ? read_records(options) : Records{};
  if (recorded && !are_logged(records, options.warm_up) && all_have_traces(base) &&
      all_have_traces(fresh)) {
    core::print_remark(fmt::format(
        "sidestream-trace: warning: metrics.jsonl has too few steps behind the {} of the "
        "warm-up (--log-every 1 logs all of them): step times are those of the traces\n",
        options.warm_up));
    recorded = false;
  }
  const verify::Settings settings{.command = options.command,
                                  .base_flags = joined(options.base),
                                  .fresh_flags = joined(options.fresh),
                                  .warm_up = recorded ? options.warm_up : 0,
                                  .force = options.force};
  verify::Verification result = recorded
                                    ? verify::verify_runs(records.base, records.fresh, settings)
                                    : by_traces(options, base, fresh, settings);
  const verify::Decision decision =
      verify::decide(result, {.fail_if_slower_pct = options.fail_if_slower_pct});
  if (base.front() && fresh.front()) result.profiles = profiles_of(*base.front(), *fresh.front());
  const std::string json = comparison_json(result, decision);
  if (!options.json.empty())
    core::write_file_atomically(options.json, with_reports(json, base, fresh));
  if (!options.html.empty()) write_page(options, base, fresh, json);
  if (options.quiet) {
    if (decision.code != verify::GateCode::kPassed)
      core::print_remark(fmt::format("sidestream-trace: {}\n", decision.reason));
    return static_cast<int>(decision.code);
  }
  const Terminal terminal = detect_terminal(1);
  const report::TextStyle style{.width_columns = terminal.text_width_columns(),
                                .color = terminal.color};
  const std::string text = verification_text(result, decision, style);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return static_cast<int>(decision.code);
}

}  // namespace sidestream::launch

#include "launch/options/summary_options.hpp"

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = SummaryOptions;

SettingTable<Options> table() {
  return {{"Runs side by side",
           {words<Options>(
               {"run", "FOLDER...", "run directories; ratios are over the first one"},
               [](auto& o) -> auto& { return o.runs; })}}};
}

}  // namespace

SummaryOptions parse_summary_options(const std::vector<std::string>& arguments) {
  SummaryOptions options =
      parse_command(arguments, table(), {.command = "summary", .positional = "run"});
  if (options.runs.empty())
    throw core::ConfigError("--run is missing: give one or more run directories");
  return options;
}

std::string summary_help(int width_columns) {
  return "Shows runs side by side: step time, tokens per second, exposed communication, reader "
         "cost, loss curves.\n\n"
         "  sidestream summary runs/baseline runs/optimised\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch

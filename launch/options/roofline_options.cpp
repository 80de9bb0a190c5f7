#include "launch/options/roofline_options.hpp"

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = RooflineOptions;

SettingTable<Options> table() {
  return {
      {"The longest operations against what the machine can do",
       {words<Options>(
            {"input", "PATH...", "traces, or folders with traces; the words alone are enough"},
            [](auto& o) -> auto& { return o.inputs; }),
        words<Options>(
            {"ncu", "FILE...", "counters of Nsight Compute as CSV, instead of estimates", "none"},
            [](auto& o) -> auto& { return o.ncu; }),
        text<Options>(
            {"json", "FILE", "write report.json with bounds and causes", "not written"},
            [](auto& o) -> auto& { return o.json; }),
        text<Options>(
            {"html", "FILE", "write a page for the browser, with roofs and causes", "not written"},
            [](auto& o) -> auto& { return o.html; }),
        count<Options>({"operations", "N", "how many of them"},
                       [](auto& o) -> auto& { return o.operations; }, {1, 1000}),
        optional_count<Options>({"threads", "N", "files read at once", "every core"},
                                [](auto& o) -> auto& { return o.threads; }, {1, 4096})}}};
}

}  // namespace

RooflineOptions parse_roofline_options(const std::vector<std::string>& arguments) {
  RooflineOptions options =
      parse_command(arguments, table(),
                    {.command = "roofline", .positional = "input", .program = "sidestream-trace"});
  if (options.inputs.empty())
    throw core::ConfigError("no trace given: name files or a run directory");
  return options;
}

std::string roofline_help(int width) {
  return "Says how near the longest operations come to their roof, why not nearer, and which "
         "command reads the counters that would tell more.\n\n"
         "  sidestream-trace roofline runs/a\n"
         "  sidestream-trace roofline runs/a --ncu ncu.csv --html roofline.html\n\n"
         "Roofs are those that `sidestream bench ceilings` measured on this machine; of a GPU its "
         "datasheet's, marked as such, where nothing was measured.\n\n" +
         flags_help(flags_of(table()), width);
}

}  // namespace sidestream::launch

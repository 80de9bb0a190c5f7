#include "launch/options/compare_options.hpp"

#include <fmt/format.h>

#include "core/base/shell_words.hpp"
#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

// As it is written: two words, or two lists.
struct Options {
  std::vector<std::filesystem::path> runs = {};
  CompareOptions compare = {};
};

SettingTable<Options> table() {
  return {
      {"Two runs, or two sides with a run for each block",
       {words<Options>(
            {"run", "A B", "run directories or traces; the two words alone are enough"},
            [](auto& o) -> auto& { return o.runs; }),
        words<Options>(
            {"base", "PATH...", "runs of the base, in the order of the blocks"},
            [](auto& o) -> auto& { return o.compare.base; }),
        words<Options>(
            {"new", "PATH...", "runs of the new side, in the same order"},
            [](auto& o) -> auto& { return o.compare.fresh; }),
        count<Options>({"warm-up", "N", "logged steps at the start of a run that do not count"},
                       [](auto& o) -> auto& { return o.compare.warm_up; }, {0, 1 << 20}),
        number<Options>({"fail-if-slower", "PCT",
                         "exit code 10 when the new side is shown to be slower by more than "
                         "this, 12 when that cannot be excluded",
                         "no gate"},
                        [](auto& o) -> auto& { return o.compare.fail_if_slower_pct; },
                        {.min = 0, .max = 1000}),
        on_off<Options>(
            switch_named("force", "compare although model, data, batch or ranks differ"),
            [](auto& o) -> auto& { return o.compare.force; }),
        text<Options>(
            {"json", "FILE", "write everything as JSON too", "not written"},
            [](auto& o) -> auto& { return o.compare.json; }),
        text<Options>(
            {"html", "FILE", "write a page for the browser too, one file", "not written"},
            [](auto& o) -> auto& { return o.compare.html; }),
        on_off<Options>(
            switch_named("quiet", "no text on the terminal"),
            [](auto& o) -> auto& { return o.compare.quiet; }),
        optional_count<Options>({"threads", "N", "files read at once", "every core"},
                                [](auto& o) -> auto& { return o.compare.threads; }, {1, 4096})}}};
}

}  // namespace

CompareOptions parse_compare_options(const std::vector<std::string>& arguments) {
  Options options =
      parse_command(arguments, table(),
                    {.command = "compare", .positional = "run", .program = "sidestream-trace"});
  CompareOptions& compare = options.compare;
  compare.command = "sidestream-trace compare " + core::shell_words(arguments);
  const bool lists = !compare.base.empty() || !compare.fresh.empty();
  if (lists && !options.runs.empty())
    throw core::ConfigError("give two runs, or --base and --new, not both");
  if (!lists) {
    if (options.runs.size() != 2)
      throw core::ConfigError(
          fmt::format("expected two runs, base and new, found {}; several of each go with --base "
                      "and --new",
                      options.runs.size()));
    compare.base = {options.runs[0]};
    compare.fresh = {options.runs[1]};
  }
  if (compare.base.size() != compare.fresh.size())
    throw core::ConfigError(
        fmt::format("expected as many runs of --new as of --base, found {} and {}",
                    compare.fresh.size(), compare.base.size()));
  return compare;
}

std::string compare_help(int width) {
  return "Lays two runs side by side: step time, parts of it, operations, buckets, losses, memory."
         "\n\n"
         "  sidestream-trace compare runs/a runs/b\n"
         "  sidestream-trace compare --base a1 a2 a3 --new b1 b2 b3 --fail-if-slower 3\n\n"
         "One run a side has no scatter, so it proves nothing: `sidestream verify` makes runs in "
         "pairs.\n\n" +
         flags_help(flags_of(table()), width);
}

}  // namespace sidestream::launch

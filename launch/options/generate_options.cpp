#include "launch/options/generate_options.hpp"

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = GenerateOptions;

// Nothing is as good a beginning as any.
Setting<Options> prompt() {
  return {{"prompt", "TEXT", "what the text begins with", "nothing"},
          [](Options& options, const std::string& text) { options.prompt = text; },
          [](const Options& options) { return std::optional(options.prompt); }};
}

SettingTable<Options> table() {
  return {
      {"Text from a checkpoint",
       {text<Options>(
            {"checkpoint", "FOLDER", "a checkpoint, or a run directory (its newest good one)"},
            [](auto& o) -> auto& { return o.checkpoint; }),
        prompt(),
        count<Options>({"tokens", "N", "tokens to add"}, [](auto& o) -> auto& { return o.tokens; },
                       {1, 1 << 24}),
        number<Options>({"temperature", "X", "0: always the likeliest token; 1: as the model says"},
                        [](auto& o) -> auto& { return o.temperature; }, {.min = 0, .max = 100}),
        count<Options>({"top-k", "N", "draw from the N likeliest tokens; 0: from all"},
                       [](auto& o) -> auto& { return o.top_k; }, {0, 1 << 30}),
        count<Options>({"seed", "N", "seed of the draw"}, [](auto& o) -> auto& { return o.seed; },
                       {}),
        optional_count<Options>({"threads", "N", "threads for compute", "every core"},
                                [](auto& o) -> auto& { return o.threads; }, {1, 4096})}}};
}

}  // namespace

GenerateOptions parse_generate_options(const std::vector<std::string>& arguments) {
  GenerateOptions options = parse_command(arguments, table(), {.command = "generate"});
  if (options.checkpoint.empty()) {
    throw core::ConfigError("--checkpoint is missing: give a checkpoint folder or a run directory");
  }
  return options;
}

std::string generate_help(int width_columns) {
  return "Continues a text with a trained model.\n\n"
         "  sidestream generate --checkpoint runs/a --prompt \"template <typename\" --tokens 200\n"
         "  sidestream generate --checkpoint runs/a/checkpoints/step_00000100 --temperature 0\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch

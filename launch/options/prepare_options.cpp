#include "launch/options/prepare_options.hpp"

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = PrepareOptions;

SettingTable<Options> table() {
  return {
      {"Text in, token shards out",
       {words<Options>(
            {"input", "PATH...",
             "text files and folders, which are walked but for hidden ones and links to folders; "
             "may be given several times"},
            [](auto& o) -> auto& { return o.inputs; }),
        words<Options>(
            {"include", "GLOB...", "only files whose name matches, such as '*.hpp'", "every file"},
            [](auto& o) -> auto& { return o.include; }),
        text<Options>(
            {"output", "FOLDER", "where train and val shards go"},
            [](auto& o) -> auto& { return o.output; }),
        text<Options>(
            {"tokenizer", "bytes|PATH", "one token a byte, or a tokenizer.json of byte-level BPE"},
            [](auto& o) -> auto& { return o.tokenizer; }),
        number<Options>({"val-fraction", "RATIO", "share of the files that goes to validation"},
                        [](auto& o) -> auto& { return o.val_fraction; },
                        {.min = 0, .max = 1, .max_bound = Bound::kExcluded}),
        count<Options>({"shard-tokens", "TOKENS", "tokens of a full shard"},
                       [](auto& o) -> auto& { return o.shard_tokens; },
                       {1, (std::int64_t{1} << 31) - 1}),
        optional_count<Options>({"threads", "N", "files read at once", "every core"},
                                [](auto& o) -> auto& { return o.threads; }, {1, 1024}),
        count<Options>({"seed", "N", "seed of the split"}, [](auto& o) -> auto& { return o.seed; },
                       {})}}};
}

}  // namespace

PrepareOptions parse_prepare_options(const std::vector<std::string>& arguments) {
  PrepareOptions options = parse_command(arguments, table(), {.command = "prepare"});
  if (options.inputs.empty())
    throw core::ConfigError("--input is missing: give text files or folders");
  if (options.output.empty())
    throw core::ConfigError("--output is missing: give a folder for the token shards");
  return options;
}

std::string prepare_help(int width_columns) {
  return "Turns text into token shards for `sidestream train --data`.\n\n"
         "  sidestream prepare --input src docs --include '*.cpp' '*.md' --output data/mine\n"
         "  sidestream prepare --input corpus.txt --tokenizer tokenizer.json --output "
         "data/mine\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch

#include "core/data/prepare.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "core/base/standard_output.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/one_process.hpp"
#include "launch/options/prepare_options.hpp"
#include "launch/process/stop_request.hpp"
#include "launch/reporting/terminal.hpp"

namespace sidestream::launch {
namespace {

// Where nobody has set it. The system may not know how many cores there are, or know of thousands.
int threads_of_machine() {
  const unsigned most = data::PrepareConfig::kMostThreads;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, most));
}

data::PrepareConfig config_of(const PrepareOptions& options) {
  data::PrepareConfig config{.inputs = {},
                             .include = options.include,
                             .output = options.output,
                             .tokenizer = options.tokenizer,
                             .val_fraction = options.val_fraction,
                             .seed = options.seed,
                             .shard_tokens = static_cast<std::uint64_t>(options.shard_tokens),
                             .threads = options.threads.value_or(threads_of_machine())};
  for (const auto& input : options.inputs) config.inputs.push_back(input.string());
  return config;
}

std::string text_of(const data::PrepareProgress& progress) {
  const double share = progress.bytes_total > 0 ? 100.0 * static_cast<double>(progress.bytes_done) /
                                                      static_cast<double>(progress.bytes_total)
                                                : 100.0;
  return fmt::format("{:5.1f} % of {:.1f} MB, {} tokens", share,
                     static_cast<double>(progress.bytes_total) * 1e-6, progress.tokens);
}

// On a terminal one line that changes; elsewhere a line every few seconds.
class ProgressLine {
 public:
  void show(const data::PrepareProgress& progress) {
    if (terminal_.interactive) return redraw(text_of(progress));
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kInterval) return;
    last_ = now;
    core::print_remark(fmt::format("prepare: {}\n", text_of(progress)));
  }
  void clear() const {
    if (terminal_.interactive) redraw("");
  }

 private:
  // Whose escape sequences are our own.
  void redraw(std::string_view text) const {
    std::fputs(terminal_.redrawn(std::string(text)).c_str(), stderr);
  }

  static constexpr std::chrono::seconds kInterval{3};

  Terminal terminal_ = detect_terminal(STDERR_FILENO);
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::string describe(const char* name, const data::SplitInfo& split) {
  return fmt::format("  {:<5} {} tokens from {} files ({:.1f} MB) in {} shard(s)\n", name,
                     split.tokens, split.files, static_cast<double>(split.bytes) * 1e-6,
                     split.shards.size());
}

}  // namespace

int run_prepare(const CommandCall& call) {
  require_one_process("prepare");
  const PrepareOptions options = parse_prepare_options(call.arguments);
  data::PrepareConfig config = config_of(options);
  const StopRequest stop;
  ProgressLine line;
  config.on_progress = [&](const data::PrepareProgress& progress) { line.show(progress); };
  std::vector<std::string> notes;
  config.on_note = [&](const std::string& note) { notes.push_back(note); };
  config.stop_requested = [&] { return stop.requested(); };
  data::DatasetInfo info;
  try {
    info = data::prepare(config);
  } catch (const core::Error& error) {
    line.clear();
    if (!stop.requested()) throw;
    core::print_remark(fmt::format("sidestream: {}\n", error.what()));
    return 128 + stop.signal();
  }
  line.clear();
  fmt::print("{}: vocabulary {}\n{}{}", options.output.string(), info.vocab_size,
             describe("train", info.train), describe("val", info.validation));
  for (const std::string& note : notes) fmt::print("  {}\n", note);
  if (info.skipped_files > 0) {
    fmt::print(
        "  {} skipped, the first: {} ({}); all are in dataset.json\n",
        info.skipped_files == 1 ? "1 file was" : fmt::format("{} files were", info.skipped_files),
        core::printable(info.skipped.front().name), core::printable(info.skipped.front().reason));
  }
  return 0;
}

}  // namespace sidestream::launch

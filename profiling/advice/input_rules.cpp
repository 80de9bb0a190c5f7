// Waiting for data: the loader, copies, files.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "profiling/advice/rule.hpp"

namespace sidestream::advice {
namespace {

// Opening and reading many of them costs more than what is in them.
constexpr double kManyFiles = 100;
bool small_files(const Facts& facts) {
  constexpr double kSmallBytes = 1e6;
  return facts.data && facts.data->files >= kManyFiles && facts.data->mean_bytes < kSmallBytes;
}

// iostat's manual: a disk that is near 100 % busy is saturated.
constexpr double kSaturated = 0.9;
bool storage_saturated(const Facts& facts) {
  return facts.system.disk_busy.value_or(0) >= kSaturated;
}

// Why it is not known how long steps wait for data.
std::optional<Outcome> without_input(const Facts& facts) {
  if (const auto nothing = without_budget(facts)) return nothing;
  if (!facts.traces.input_ranges) return could_not_look(kNeedsInputRanges);
  return std::nullopt;
}

// The share of a step that waits for data. A profiler makes computing longer and so hides waiting:
// what the steps beside it waited for counts where it is more time.
struct Waiting {
  double most = 0;   // over a recorded step
  double bound = 0;  // with the waiting of other ranks for the one that waits for data
  std::vector<Evidence> evidence = {};
};

// Of all ranks: the mean, as the step is.
double unprofiled_data_wait(const Facts& facts) {
  double sum = 0;
  for (const auto& [rank, share] : facts.unprofiled_data_wait) sum += share;
  return facts.unprofiled_data_wait.empty()
             ? 0
             : sum / static_cast<double>(facts.unprofiled_data_wait.size());
}

// What of the step the rank that waits longest stands for, steps without the profiler have as much
// more of, too.
void add_bound(const Facts& facts, double recorded, Waiting& waiting) {
  const double longest = facts.share_of(facts.longest_data_wait_ns);
  const double more = recorded > 0 ? std::max(1.0, longest / recorded) : 1;
  waiting.bound = std::min(1.0, waiting.most * more);
  if (more > 1)
    waiting.evidence.push_back(share("the rank that waits longest, step by step", longest));
}

Waiting waiting_of(const Facts& facts) {
  const double recorded = facts.share_of(facts.step->idle_data_ns);
  const double unprofiled = unprofiled_data_wait(facts);
  Waiting waiting{.most = recorded, .evidence = {share("waiting for data", recorded)}};
  if (facts.of_recorded_step(unprofiled) > recorded) {
    waiting.most = facts.of_recorded_step(unprofiled);
    waiting.evidence.push_back(share("waiting for data", unprofiled, "step without the profiler"));
  }
  add_bound(facts, recorded, waiting);
  return waiting;
}

// What config.cfg says is up to whoever wrote it.
std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

enum class LoaderWorkers { kNone, kSome };

Outcome waiting_for_data(const Facts& facts, const Rule& rule, LoaderWorkers of) {
  if (const auto nothing = without_input(facts)) return *nothing;
  const auto workers = facts.setting("loader-workers");
  if (of == LoaderWorkers::kNone && !workers)
    return could_not_look("the run directory of the traces (config.cfg)");
  const LoaderWorkers there = workers == "0" ? LoaderWorkers::kNone : LoaderWorkers::kSome;
  if (there != of || small_files(facts) || storage_saturated(facts)) return nothing_found();
  const Waiting waiting = waiting_of(facts);
  if (waiting.most <= rule.threshold) return nothing_found();
  Found what{.bound = waiting.bound, .evidence = waiting.evidence};
  if (const auto number = workers ? number_of(*workers) : std::nullopt)
    what.evidence.push_back({"loader-workers", *number, "threads"});
  return found(what);
}

Outcome no_workers(const Facts& facts, const Rule& rule) {
  return waiting_for_data(facts, rule, LoaderWorkers::kNone);
}

bool without_prefetch(const Facts& facts) { return facts.setting("prefetch") == "0"; }

Outcome no_prefetch(const Facts& facts, const Rule& rule) {
  if (facts.step && !facts.setting("prefetch"))
    return could_not_look("the run directory of the traces (config.cfg)");
  if (facts.step && !without_prefetch(facts)) return nothing_found();
  return waiting_for_data(facts, rule, LoaderWorkers::kSome);
}

Outcome slow_loader(const Facts& facts, const Rule& rule) {
  if (facts.step && without_prefetch(facts)) return nothing_found();
  return waiting_for_data(facts, rule, LoaderWorkers::kSome);
}

Outcome pageable_copies(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.copies) {
    if (facts.on_device) return could_not_look("copies in the traces");
    return nothing_found();  // host ranks copy nothing to a device
  }
  const double exposed = facts.share_of(facts.step->exposed_copies_ns);
  if (facts.copies->pageable_bytes < rule.threshold || exposed == 0) return nothing_found();
  return found({.bound = std::min(exposed, facts.share_of(facts.copies->pageable_ns)),
                .evidence = {{"pageable copies", facts.copies->pageable_bytes, "B", "step"},
                             milliseconds("in pageable copies", facts.copies->pageable_ns),
                             share("exposed copies", exposed)}});
}

Outcome default_stream(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.on_device) return nothing_found();
  if (!facts.copies) return could_not_look("copies in the traces");
  const double exposed = facts.share_of(facts.step->exposed_copies_ns);
  const double bound = std::min(exposed, facts.share_of(facts.copies->default_stream_ns));
  if (bound <= rule.threshold) return nothing_found();
  return found({.bound = bound,
                .evidence = {milliseconds("in copies on the default stream, beside kernels on it",
                                          facts.copies->default_stream_ns),
                             share("exposed copies", exposed)}});
}

Outcome many_small_files(const Facts& facts, const Rule& rule) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (facts.setting("data") == "synthetic") return nothing_found();
  if (const auto nothing = without_input(facts)) return *nothing;
  if (!facts.data)
    return could_not_look("the data folder that config.cfg of the run directory names");
  const Waiting waiting = waiting_of(facts);
  if (!small_files(facts) || waiting.most <= rule.threshold || storage_saturated(facts))
    return nothing_found();
  Found what{.bound = waiting.bound, .evidence = waiting.evidence};
  what.evidence.push_back({"files in the data folder", facts.data->files, ""});
  what.evidence.push_back({"a file has on average", facts.data->mean_bytes, "B"});
  return found(what);
}

Outcome storage(const Facts& facts, const Rule& rule) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (facts.setting("data") == "synthetic") return nothing_found();
  if (const auto nothing = without_input(facts)) return *nothing;
  if (!facts.system.disk_busy)
    return could_not_look("busy time of the disks inside the steps (--sample-hz 20)");
  const Waiting waiting = waiting_of(facts);
  if (!storage_saturated(facts) || waiting.most <= rule.threshold) return nothing_found();
  Found what{.bound = waiting.bound, .evidence = waiting.evidence};
  what.evidence.push_back(
      share("disk " + facts.system.disk + " busy", *facts.system.disk_busy, "time"));
  return found(what);
}

const Rule kInputRules[] = {
    {"input-no-workers", "The training thread reads the batches itself", 0.05,
     "waiting for data with --loader-workers 0",
     "TensorBoard plugin: DataLoader above 5 % of a step", "--loader-workers 2 --prefetch 4",
     "reading takes no time but the copy to the device does", "waiting for data in the step budget",
     no_workers, PlaceKind::kInput, Figures::kOfStep},
    {"input-no-prefetch", "Batches are not read ahead", 0.05,
     "waiting for data with --prefetch 0 and loader workers",
     "TensorBoard plugin: DataLoader above 5 % of a step", "--prefetch 4",
     "the run with --fix-batch on is as slow", "waiting for data in the step budget", no_prefetch,
     PlaceKind::kInput, Figures::kOfStep},
    {"input-slow", "The loader does not keep up", 0.05, "waiting for data with loader workers",
     "TensorBoard plugin: DataLoader above 5 % of a step",
     "more --loader-workers or --prefetch; prepare the data once, in large shards",
     "the run with --fix-batch on is as slow",
     "`verify --base \"\" --new \"--fix-batch on\"` removes it", slow_loader, PlaceKind::kInput,
     Figures::kOfStep},
    {"pageable-copies", "Copies from memory that is not pinned", 65536,
     "bytes a step in pageable copies that nothing hides",
     "nsys rule cuda_memcpy_async; copies up to 64 KB are ignored there too", "--pin-memory on",
     "the copies are of a logger or a checkpoint", "exposed copies in the step budget",
     pageable_copies, PlaceKind::kPageableCopy},
    {"default-stream", "Copies and kernels take turns on the default stream", 0.03,
     "exposed copies between host and device from pinned memory, on the legacy default stream "
     "that kernels run on too",
     "CUDA C++ Programming Guide: work of one stream runs in order; 3 % of a step",
     "copies ahead of time, on a stream of their own", "the next kernel needs this copy",
     "timeline: the copies beside kernels", default_stream, PlaceKind::kDefaultStreamCopy},
    {"many-small-files", "Many small files", 0.05,
     "waiting for data, with 100 files or more below 1 MB on average in the data folder",
     "TensorBoard plugin: DataLoader above 5 % of a step; a megabyte is what a disk reads while "
     "it "
     "opens a file",
     "`sidestream prepare`: the same data in a few large shards", "the files are in memory already",
     "waiting for data in the step budget", many_small_files, PlaceKind::kInput, Figures::kOfStep},
    {"storage-saturated", "The storage is saturated", 0.05,
     "waiting for data while a disk is busy for 90 % of the time or more",
     "TensorBoard plugin: DataLoader above 5 % of a step; iostat's manual: near 100 % a disk is "
     "saturated",
     "data on faster storage or in memory; `sidestream prepare` makes it smaller",
     "something else keeps the disk busy", "disk busy in the samples of the system", storage,
     PlaceKind::kInput, Figures::kOfStep}};

}  // namespace

std::vector<Rule> input_rules() { return {std::begin(kInputRules), std::end(kInputRules)}; }

}  // namespace sidestream::advice

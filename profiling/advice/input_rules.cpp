// Waiting for data: the loader, copies, files.
#include "profiling/advice/rule.hpp"

namespace sidestream::advice {
namespace {

constexpr const char* kNeedsSteps = "steps (ranges ProfilerStep#N) in the traces";

Outcome waiting_for_data(const Facts& facts, const Rule& rule, bool without_workers) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  const auto workers = facts.setting("loader-workers");
  if (without_workers && !workers)
    return could_not_look("the run directory of the traces (config.cfg)");
  if ((workers == "0") != without_workers) return nothing_found();
  const double waiting = facts.share_of(facts.step->idle_data_ns);
  if (waiting <= rule.threshold) return nothing_found();
  Found what{.bound = waiting, .evidence = {share("waiting for data", waiting)}};
  if (workers) what.evidence.push_back({"loader-workers", std::stod(*workers), "threads"});
  return found(what);
}

Outcome no_workers(const Facts& facts, const Rule& rule) {
  return waiting_for_data(facts, rule, true);
}

Outcome slow_loader(const Facts& facts, const Rule& rule) {
  return waiting_for_data(facts, rule, false);
}

Outcome pageable_copies(const Facts& facts, const Rule& rule) {
  if (!facts.step) return could_not_look(kNeedsSteps);
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

Outcome small_files(const Facts&, const Rule&) {
  return could_not_look("file opens (a trace of the operating system: nsys --trace osrt)");
}

Outcome storage(const Facts&, const Rule&) {
  return could_not_look("system samples of the disks beside the traces");
}

}  // namespace

std::vector<Rule> input_rules() {
  return {
      {"input-no-workers", "The training thread reads the batches itself", 0.05,
       "waiting for data with --loader-workers 0",
       "TensorBoard plugin: DataLoader above 5 % of a step", "--loader-workers 2 --prefetch 4",
       "reading takes no time but the copy to the device does",
       "waiting for data in the step budget", no_workers},
      {"input-slow", "The loader does not keep up", 0.05, "waiting for data with loader workers",
       "TensorBoard plugin: DataLoader above 5 % of a step",
       "more --loader-workers or --prefetch; prepare the data once, in large shards",
       "the run with --fix-batch on is as slow",
       "`verify --base \"\" --new \"--fix-batch on\"` removes it", slow_loader},
      {"pageable-copies", "Copies from memory that is not pinned", 65536,
       "bytes a step in pageable copies that nothing hides",
       "nsys rule cuda_memcpy_async; copies up to 64 KB are ignored there too", "--pin-memory on",
       "the copies are of a logger or a checkpoint", "exposed copies in the step budget",
       pageable_copies},
      {"many-small-files", "Many small files", 0, "file opens a step", "none", "prepare shards", "",
       "", small_files},
      {"storage-saturated", "The storage is saturated", 0, "utilisation of the disk", "none",
       "faster storage, or data in memory", "", "", storage}};
}

}  // namespace sidestream::advice

// Collectives and the ranks among each other.
#include <algorithm>
#include <iterator>
#include <utility>

#include "profiling/advice/foreign_load.hpp"
#include "profiling/advice/rule.hpp"
#include "profiling/ranges/phase_named.hpp"

namespace sidestream::advice {
namespace {

constexpr const char* kNeedsCollectives = "collectives in the traces";

double exposed(const Facts& facts) {
  return facts.share_of(facts.step->exposed_comm_ns + facts.step->idle_comm_ns);
}

double hidden_share(const StepFacts& step) {
  const double all = step.overlapped_comm_ns + step.exposed_comm_ns + step.idle_comm_ns;
  return all > 0 ? step.overlapped_comm_ns / all : 0;
}

// One rank is always the last: of a single step nobody knows whether it is slow.
bool is_straggler_sure(const Facts& facts) { return facts.straggler && facts.straggler->is_sure(); }

// Of the step: waiting for a rank that comes late. Its own rule has this part, and no other one: to
// begin sooner or to move less takes nothing from it. The late ranks themselves do not wait.
double waiting_for_straggler(const Facts& facts) {
  if (!is_straggler_sure(facts)) return 0;
  const std::vector<int> late = facts.straggler->ranks();
  double waiting = 1;  // of the ranks that the step is of
  if (facts.rank) {
    waiting = std::find(late.begin(), late.end(), *facts.rank) == late.end() ? 1 : 0;
  } else if (facts.step_of_rank.size() > late.size()) {
    waiting -= static_cast<double>(late.size()) / static_cast<double>(facts.step_of_rank.size());
  }
  const double cost = facts.share_of(static_cast<double>(facts.straggler->cost_ns_per_step));
  return std::min(exposed(facts), waiting * cost);
}

double exposed_without_waiting(const Facts& facts) {
  return exposed(facts) - waiting_for_straggler(facts);
}

// Only compute can hide communication, and about two thirds of it are backward.
double hideable(const Facts& facts) {
  return std::min(exposed_without_waiting(facts), facts.share_of(facts.step->compute_ns));
}

std::vector<Evidence> evidence_of(const Facts& facts) {
  std::vector<Evidence> all = {share("exposed communication", exposed(facts))};
  if (const double waiting = waiting_for_straggler(facts); waiting > 0)
    all.push_back(share("of it waiting for a rank that is late", waiting));
  all.push_back(share("hidden", hidden_share(*facts.step), "communication"));
  return all;
}

// With more buckets than a first, smaller one and the rest, the large one is a single parameter,
// such as the embedding of a large vocabulary: no size of buckets takes that apart.
bool one_huge_bucket(const Facts& facts) {
  constexpr double kMostBuckets = 2;
  const auto& all = facts.collectives;
  return all && all->bytes > kSmallCollectiveBytes && all->largest_bytes > 0.8 * all->bytes &&
         all->buckets_per_step <= kMostBuckets;
}

bool tiny_buckets(const Facts& facts) {
  constexpr double kMany = 20;
  return facts.collectives && facts.collectives->small_per_step >= kMany;
}

// Its own rule explains exposed communication that is mostly many small collectives.
bool exposed_in_tiny_buckets(const Facts& facts) {
  return tiny_buckets(facts) &&
         facts.share_of(facts.collectives->small_exposed_ns) > exposed(facts) / 2;
}

// Nothing hides what is spent waiting for a rank that comes late.
bool exposed_by_straggler(const Facts& facts) {
  return is_straggler_sure(facts) &&
         facts.share_of(static_cast<double>(facts.straggler->cost_ns_per_step)) >
             exposed(facts) / 2;
}

// Its own rule says why nothing is hidden.
bool on_stream_of_compute(const Facts& facts) {
  return facts.on_device && facts.kernels && facts.kernels->one_stream;
}

Outcome not_overlapped(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives) return could_not_look(kNeedsCollectives);
  if (exposed_without_waiting(facts) <= rule.threshold) return nothing_found();
  constexpr double kHidden = 0.1;
  if (hidden_share(*facts.step) > kHidden || one_huge_bucket(facts) ||
      exposed_in_tiny_buckets(facts) || exposed_by_straggler(facts) || on_stream_of_compute(facts))
    return nothing_found();
  Found what{.bound = hideable(facts), .evidence = evidence_of(facts)};
  if (facts.setting("overlap") == "on")
    what.fix =
        "overlap is on already: smaller buckets start sooner (--bucket-mb, --first-bucket-mb), and "
        "what else runs on the processors keeps collectives from moving on beside backward";
  return found(std::move(what));
}

Outcome tiny(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives || facts.collectives->bytes == 0)
    return could_not_look("sizes of collectives in the traces");
  const double cost =
      std::min(facts.share_of(facts.collectives->small_exposed_ns), exposed_without_waiting(facts));
  if (!tiny_buckets(facts) || cost <= rule.threshold) return nothing_found();
  return found(
      {.bound = cost,
       .evidence = {{"collectives below 1 MB", facts.collectives->small_per_step, "", "step"},
                    share("exposed in them", cost)}});
}

Outcome huge(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives || facts.collectives->bytes == 0)
    return could_not_look("sizes of collectives in the traces");
  if (!one_huge_bucket(facts) || on_stream_of_compute(facts) ||
      exposed_without_waiting(facts) <= rule.threshold)
    return nothing_found();
  Found what{.bound = hideable(facts), .evidence = evidence_of(facts)};
  what.evidence.push_back({"largest collective", facts.collectives->largest_bytes, "B",
                           "one of all gradients: it cannot start before backward ends"});
  return found(what);
}

// Host ranks communicate on the processors that somebody else takes.
bool slowed_by_others(const Facts& facts) {
  const auto load = facts.on_device ? std::nullopt : foreign_load(facts);
  return load && takes_processors(*load, facts);
}

Outcome bound_by_link(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives) return could_not_look(kNeedsCollectives);
  if (exposed(facts) <= rule.threshold) return nothing_found();
  constexpr double kHidden = 0.1;
  if (hidden_share(*facts.step) <= kHidden || one_huge_bucket(facts) || tiny_buckets(facts) ||
      is_straggler_sure(facts) || slowed_by_others(facts))
    return nothing_found();
  // A faster link takes nothing from the time that ranks wait for each other. Of collectives that
  // are not matched all may be transfer.
  const auto transfers = facts.collectives->transfer_ns;
  const double unmatched = facts.share_of(facts.collectives->unmatched_ns);
  const double bound =
      transfers ? std::min(exposed(facts), facts.share_of(*transfers) + unmatched) : exposed(facts);
  if (bound <= rule.threshold) return nothing_found();
  Found what{.bound = bound, .evidence = evidence_of(facts)};
  if (transfers)
    what.evidence.push_back(
        share("transfers, without waiting for other ranks", facts.share_of(*transfers)));
  if (transfers && unmatched > 0)
    what.evidence.push_back(
        share("collectives that are not matched, with their waiting", unmatched));
  const auto& bus = facts.collectives->bus_bytes_per_s;
  if (bus && facts.ceilings && facts.ceilings->link_bytes_per_s > 0)
    what.evidence.push_back(
        share("bus bandwidth", *bus / facts.ceilings->link_bytes_per_s, "link as measured"));
  return found(what);
}

// What the straggler is slower at, as something to do.
std::string straggler_fix(const std::string& phase, bool foreign) {
  if (phase == "data" || phase == "h2d")
    return std::string("look at the storage and the loader of this rank; more ") +
           (foreign ? "num_workers" : "--loader-workers");
  if (ranges::is_collective_name(phase))
    return "its part of the collectives takes longer (" + phase +
           "): look at its link, and at what else runs on its cores";
  if (phase == "checkpoint" || phase == "eval")
    return "only this rank spends the time in " + phase + ": do it on all ranks, or less often";
  if (phase == statistics::kOtherWork)
    return "its host does something else in the steps, or sleeps: put ranges around what it may be";
  return "it is slower in " + phase + ": the same " +
         (foreign ? "batch size" : "--batch-size-per-rank") +
         " everywhere, clocks and other programs on its machine";
}

Outcome straggler(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.straggler && !facts.traces.every_rank)
    return could_not_look("the traces of all ranks of a process group");
  if (!facts.straggler && !facts.traces.matched_collectives)
    return could_not_look("collectives in the traces of all ranks");
  if (!facts.straggler) return nothing_found();
  if (!is_straggler_sure(facts))
    return could_not_look("two steps or more in the traces, to tell a slow rank from chance");
  const double cost = facts.share_of(static_cast<double>(facts.straggler->cost_ns_per_step));
  if (cost < rule.threshold) return nothing_found();
  Found what{.bound = cost,
             .evidence = {share("others wait for it", cost)},
             .rank = facts.straggler->rank};
  if (!facts.straggler->phase.empty())
    what.fix = straggler_fix(facts.straggler->phase, facts.foreign);
  if (!facts.straggler->also.empty())
    what.fix = "look at what " + statistics::ranks_text(*facts.straggler) + " share, a node say" +
               (what.fix.empty() ? "" : "; of each: " + what.fix);
  return found(what);
}

Outcome one_stream(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives) return could_not_look(kNeedsCollectives);
  if (!on_stream_of_compute(facts) || exposed_without_waiting(facts) <= rule.threshold)
    return nothing_found();
  return found({.bound = hideable(facts), .evidence = evidence_of(facts)});
}

// A sharded update needs of each sum its own part only; the parameters are gathered afterwards.
Outcome collective_choice(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.world_size < 2) return nothing_found();
  if (!facts.collectives || facts.collectives->bytes == 0)
    return could_not_look("sizes of collectives in the traces");
  const CollectiveFacts& all = *facts.collectives;
  constexpr double kAsMany = 0.5, kHardlyAny = 0.1;
  const bool shards = all.all_reduce_bytes > kSmallCollectiveBytes &&
                      all.gathered_bytes > kAsMany * all.all_reduce_bytes &&
                      all.reduce_scatter_bytes < kHardlyAny * all.all_reduce_bytes;
  const double exposed_of_them =
      std::min(facts.share_of(all.all_reduce_exposed_ns), exposed_without_waiting(facts));
  const double saved = exposed_of_them / 2;
  if (!shards || saved <= rule.threshold) return nothing_found();
  return found({.bound = saved,
                .evidence = {{"all-reduced", all.all_reduce_bytes, "B", "step"},
                             {"gathered afterwards", all.gathered_bytes, "B", "step"},
                             share("exposed in all-reduces", exposed_of_them)}});
}

const Rule kCommunicationRules[] = {
    {"not-overlapped", "Communication waits for backward to end", 0.05,
     "exposed communication of which less than a tenth is hidden",
     "TensorBoard plugin: communication above 10 % of a step; half of it, because all of it "
     "could hide",
     "--overlap on", "the backward is shorter than the communication: then part of it stays",
     "overlapped communication in the step budget", not_overlapped, PlaceKind::kCollective,
     Figures::kOfStep},
    {"tiny-buckets", "Many small collectives", 0.03,
     "exposed time in 20 or more collectives a step below 1 MB",
     "DistributedDataParallel's first bucket is 1 MB, for latency",
     "--bucketing on --bucket-mb auto", "they are the optimizer's or the loss's, not gradients",
     "collectives of a step", tiny, PlaceKind::kSmallCollective},
    {"one-bucket", "All gradients travel in one bucket", 0.05,
     "exposed communication, with one collective that carries 80 % of the bytes",
     "DistributedDataParallel's default is 25 MB a bucket", "--bucket-mb auto",
     "the model is smaller than a bucket", "overlapped communication in the step budget", huge,
     PlaceKind::kCollective, Figures::kOfStep},
    {"link-bound", "Communication takes longer than there is compute to hide it", 0.10,
     "exposed communication although a tenth or more is hidden",
     "TensorBoard plugin: communication above 10 % of a step",
     "--reduce-dtype bf16, --grad-accumulation, or a larger batch",
     "a slow rank is what takes the time", "bus bandwidth of the largest buckets", bound_by_link,
     PlaceKind::kCollective},
    {"straggler", "Some rank is slower than the others", 0.02, "what the others wait for it",
     "the resolution of the straggler search: 2 % of a step", "look at this rank's machine",
     "its work is larger by design, or other programs take its processors",
     "heat map of the stragglers", straggler, PlaceKind::kStraggler},
    {"one-stream", "Collectives run on the stream of the compute", 0.05,
     "exposed communication with compute on the same streams", "TensorBoard plugin, as above",
     "collectives on a stream of their own (--overlap on)", "they depend on each other anyway",
     "timeline: lanes of compute and communication", one_stream, PlaceKind::kCollective,
     Figures::kOfStep},
    {"collective-choice", "All-reduce where reduce-scatter would do", 0.03,
     "half of the exposed time in all-reduces, where about as much is gathered in the same step "
     "and "
     "nothing is reduce-scattered",
     "nccl-tests' PERFORMANCE.md: an all-reduce moves 2 (n - 1) / n of its bytes, a "
     "reduce-scatter "
     "half of that",
     "reduce-scatter of the gradients before a sharded update (--zero 1)",
     "every rank needs all of the sum, to clip by its norm for instance",
     "bytes and exposed time of the collectives", collective_choice, PlaceKind::kCollective}};

}  // namespace

std::vector<Rule> communication_rules() {
  return {std::begin(kCommunicationRules), std::end(kCommunicationRules)};
}

}  // namespace sidestream::advice

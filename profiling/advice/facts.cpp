#include "profiling/advice/facts.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/base/real.hpp"
#include "core/data/parallel_for.hpp"
#include "profiling/advice/event_facts.hpp"
#include "profiling/advice/name_words.hpp"
#include "profiling/advice/operation_kind.hpp"
#include "profiling/advice/operator_facts.hpp"
#include "profiling/advice/places.hpp"
#include "profiling/advice/trace_contents.hpp"
#include "profiling/analysis/host_ranges.hpp"
#include "profiling/analysis/interval_set.hpp"
#include "profiling/analysis/phase_times.hpp"
#include "profiling/ranges/background_range.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::advice {
namespace {

using analysis::Analysis;

using core::real;

StepFacts mean_of(const std::vector<const analysis::StepRow*>& rows) {
  StepFacts facts{.steps = static_cast<std::int64_t>(rows.size())};
  const double count = real(facts.steps);
  for (const analysis::StepRow* row : rows) {
    facts.window_ns += real(row->budget.window_ns) / count;
    facts.compute_ns += real(row->budget.compute_ns) / count;
    facts.overlapped_comm_ns += real(row->budget.overlapped_comm_ns) / count;
    facts.exposed_comm_ns += real(row->budget.exposed_comm_ns) / count;
    facts.exposed_copies_ns += real(row->budget.exposed_memcpy_ns) / count;
    facts.idle_ns += real(row->budget.idle_ns) / count;
    facts.idle_data_ns += real(row->idle.data_ns) / count;
    facts.idle_host_ns += real(row->idle.host_ns) / count;
    facts.idle_sync_ns += real(row->idle.sync_ns) / count;
    facts.idle_after_sync_ns += real(row->idle.after_sync_ns) / count;
    facts.idle_comm_ns += real(row->idle.comm_ns) / count;
    facts.idle_lock_ns += real(row->idle.lock_ns) / count;
  }
  return facts;
}

void add_steps(const Analysis& all, Facts& facts) {
  const auto rows = analysis::plain_steps(all.ranks);
  if (rows.empty()) return;
  facts.step = mean_of(rows);
  std::map<int, std::vector<const analysis::StepRow*>> by_rank;
  for (const analysis::StepRow* row : rows) by_rank[row->rank].push_back(row);
  for (const auto& [rank, own] : by_rank) facts.step_of_rank[rank] = mean_of(own);
}

double longest_data_wait(const Analysis& all) {
  std::map<std::pair<std::string, std::int64_t>, double> of_steps;  // window, step
  analysis::visit_plain_steps(all.ranks, [&](std::size_t file, const analysis::StepRow& row) {
    if (!row.step) return;
    double& longest = of_steps[{all.ranks[file].timeline->info.window, *row.step}];
    longest = std::max(longest, real(row.idle.data_ns));
  });
  double sum = 0;
  for (const auto& [step, longest] : of_steps) sum += longest;
  return of_steps.empty() ? 0 : sum / static_cast<double>(of_steps.size());
}

// Names are ours, NCCL's, or those of c10d: "_reduce_scatter_base".
void add_kind(const analysis::CollectiveRow& row, double bytes, double steps, int world_size,
              CollectiveFacts& facts) {
  const int group_size = row.group_size > 0 ? row.group_size : world_size;
  if (has(row.name, {"reduce_scatter"})) {
    facts.reduce_scatter_bytes += bytes;
  } else if (has(row.name, {"gather"})) {
    facts.gathered_bytes += bytes * std::max(1, group_size);
  } else if (has(row.name, {"allreduce", "all_reduce"})) {
    facts.all_reduce_bytes += bytes;
    facts.all_reduce_exposed_ns += real(row.exposed_ns) / steps;
  }
}

CollectiveFacts collective_facts(const Analysis& all, double steps_of_one_rank) {
  CollectiveFacts facts;
  BusUse together;
  for (const analysis::CollectiveRow& row : all.collectives) {
    facts.per_step += real(row.count) / steps_of_one_rank;
    if (row.transfer_ns)
      facts.transfer_ns =
          facts.transfer_ns.value_or(0) + real(*row.transfer_ns) / steps_of_one_rank;
    facts.unmatched_ns += real(row.unmatched_ns) / steps_of_one_rank;
    BusUse& own = facts.bus_of_name[row.name];
    if (row.bus_gb_per_s && row.transfer_ns) {
      for (BusUse* const use : {&own, &together}) {
        use->bytes += *row.bus_gb_per_s * real(*row.transfer_ns);  // GB/s x ns: bytes
        use->transfer_ns += real(*row.transfer_ns);
      }
    }
    if (row.bytes <= 0 || row.count == 0) continue;
    const double each = real(row.bytes);
    facts.bytes += each * real(row.count) / steps_of_one_rank;
    add_kind(row, each * real(row.count) / steps_of_one_rank, steps_of_one_rank,
             all.set->world_size, facts);
    facts.largest_bytes = std::max(facts.largest_bytes, each);
    if (each >= kBucketBytes) facts.buckets_per_step += real(row.count) / steps_of_one_rank;
    if (each >= kSmallCollectiveBytes) continue;
    facts.small_per_step += real(row.count) / steps_of_one_rank;
    facts.small_exposed_ns += real(row.exposed_ns) / steps_of_one_rank;
  }
  facts.bus_bytes_per_s = together.bytes_per_s();
  return facts;
}

// What is written while neither the step nor the save waits for it. A device computes all the same.
double written_beside(const analysis::RankView& rank, const analysis::IntervalSet& saves) {
  if (rank.activity.where == analysis::Where::kDevice || rank.steps.empty()) return 0;
  const analysis::IntervalSet beside =
      analysis::host_ranges(*rank.timeline, ranges::kCheckpointWriting) - saves;
  return real(beside.length_within_ns(
      {rank.steps.front().window.start_ns, rank.steps.back().window.end_ns}));
}

// A save between two steps is in the window of neither, and training waits for it all the same.
// Only between steps that follow each other: what lies between two recordings is not known. Returns
// whether there were such steps.
bool add_saves(const analysis::RankView& rank, double files, SaveFacts& facts) {
  const analysis::IntervalSet saves =
      analysis::host_ranges(*rank.timeline, ranges::name_of(ranges::Phase::kCheckpoint));
  double inside = 0, between = 0, window = 0, gaps = 0;
  for (std::size_t i = 0; i < rank.steps.size(); ++i) {
    const analysis::StepRow& step = rank.steps[i];
    inside += real(saves.length_within_ns(step.window));
    window += real(step.window.length_ns());
    if (i == 0 || !step.step || rank.steps[i - 1].step != *step.step - 1) continue;
    if (rank.steps[i - 1].window.end_ns >= step.window.start_ns) continue;
    between +=
        real(saves.length_within_ns({rank.steps[i - 1].window.end_ns, step.window.start_ns}));
    gaps += 1;
  }
  const double steps = std::max(1.0, real(static_cast<std::int64_t>(rank.steps.size())));
  facts.inside_ns += inside / steps / files;
  facts.window_ns += window / steps / files;
  facts.between_ns += between / std::max(1.0, gaps) / files;
  facts.beside_ns += written_beside(rank, saves) / steps / files;
  return gaps > 0;
}

void device_and_libraries(const analysis::RankView& rank, Facts& facts) {
  const auto& devices = rank.timeline->info.devices;
  facts.cuda_driver = std::max(facts.cuda_driver, rank.timeline->info.cuda_driver);
  facts.cuda_runtime = std::max(facts.cuda_runtime, rank.timeline->info.cuda_runtime);
  for (const auto& [number, device] : devices)
    facts.compute_capability = compute_capability(device);
  if (devices.empty() || devices.begin()->second.memory_bytes == 0) return;
  const double whole = static_cast<double>(devices.begin()->second.memory_bytes);
  for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
    const trace::MemoryDetail* detail = rank.timeline->memory(row);
    if (detail == nullptr || detail->device < 0 || detail->allocated_bytes < 0) continue;
    facts.memory_share =
        std::max(facts.memory_share.value_or(0), real(detail->allocated_bytes) / whole);
  }
}

void add_operators(const OperatorFacts& operators, Facts& facts) {
  facts.heavy_operators = operators.heavy;
  facts.layout_copies = operators.layout_copies;
  if (operators.heavy_place) facts.places.of_all[PlaceKind::kHostOperator] = *operators.heavy_place;
  if (!facts.optimizer) return;
  facts.optimizer->fused_update = operators.fused_update;
  facts.optimizer->passes_ns = operators.passes_ns;
}

// What only Sidestream writes: its object in the file, or in recordings of other tools all of its
// phases; a step that is replayed has but one.
bool is_ours(const Analysis& all, const Facts& facts) {
  using ranges::Phase;
  const bool says = std::any_of(all.ranks.begin(), all.ranks.end(), [](const auto& rank) {
    const trace::RunFigures& figures = rank.timeline->info.figures;
    return figures.profiled.has_value() || figures.flops_per_token > 0;
  });
  const auto has = [&](Phase phase) {
    return facts.phase_ns.contains(std::string(ranges::name_of(phase)));
  };
  return says || (has(Phase::kData) && has(Phase::kReplay)) ||
         (has(Phase::kData) && has(Phase::kForward) && has(Phase::kBackward) &&
          has(Phase::kOptimizer) && has(Phase::kZeroGrad));
}

Recorder recorder_of(const Analysis& all) {
  const bool nsys = std::any_of(all.ranks.begin(), all.ranks.end(),
                                [](const auto& rank) { return rank.timeline->info.of_nsys; });
  return nsys ? Recorder::kNsys : Recorder::kKineto;
}

}  // namespace

const Place* Places::find(PlaceKind kind, int rank) const {
  if (const auto own = of_rank.find(rank); own != of_rank.end()) {
    if (const auto found = own->second.find(kind); found != own->second.end())
      return &found->second;
  }
  const auto found = of_all.find(kind);
  return found == of_all.end() ? nullptr : &found->second;
}

Facts Facts::of_rank(int rank) const {
  Facts own = *this;
  own.step = step_of_rank.at(rank);
  own.rank = rank;
  own.step_of_rank.clear();
  std::erase_if(own.unprofiled_data_wait, [rank](const auto& one) { return one.first != rank; });
  return own;
}

std::optional<double> Facts::environment_number(const std::string& name) const {
  const auto entry = environment.find(name);
  return entry == environment.end() ? std::nullopt
                                    : std::optional(std::atof(entry->second.c_str()));
}

double Facts::threads_per_core() const {
  const auto get = [&](const char* name) { return environment_number(name).value_or(0); };
  const double cores = get("cores");
  return cores > 0
             ? get("threads_per_rank") * get("world_size") / std::max(1.0, get("nodes")) / cores
             : 0;
}

// Of a step of one rank.
double fusible_time(const Analysis& all) {
  double sum_ns = 0;
  for (const analysis::Operation& one : all.operations) {
    if (one.kind == trace::Kind::kOperator && is_fusible(one.name)) sum_ns += real(one.total_ns);
  }
  return sum_ns / real(std::max<std::int64_t>(1, all.operation_steps.steps));
}

Facts gather_facts(const Analysis& all, int threads) {
  Facts facts{.world_size = all.set->world_size,
              .traces = trace_contents(all),
              .straggler = all.straggler,
              .gpu_utilisation = all.utilisation.gpu_utilisation,
              .tensor_core_share = all.utilisation.tensor_core_share,
              .mfu = all.model.mfu,
              .profiler_cost = all.model.profiler_cost,
              .unprofiled_data_wait = all.model.unprofiled_data_wait,
              .longest_data_wait_ns = longest_data_wait(all),
              .system = all.system};
  add_steps(all, facts);
  const double steps = real(std::max<std::int64_t>(1, analysis::counted_steps(all.plain_ranks)));
  const double ranks = static_cast<double>(std::max<std::size_t>(1, all.set->ranks().size()));
  SaveFacts saves;
  bool saw_between = false;
  for (const analysis::RankView& rank : all.plain_ranks) {
    for (const auto& [phase, total_ns] : analysis::phase_times(rank))
      facts.phase_ns[phase] += real(total_ns) / steps;
  }
  for (const analysis::RankView& rank : all.ranks) {
    facts.on_device = facts.on_device || rank.activity.where == analysis::Where::kDevice;
    device_and_libraries(rank, facts);
    saw_between |= add_saves(rank, real(static_cast<std::int64_t>(all.ranks.size())), saves);
  }
  if (!facts.phase_ns.empty() && (saw_between || saves.inside_ns + saves.beside_ns > 0))
    facts.saves = saves;
  if (facts.traces.operators) facts.fusible_ns = fusible_time(all);
  facts.foreign = !is_ours(all, facts);
  facts.recorder = recorder_of(all);
  if (!all.collectives.empty()) facts.collectives = collective_facts(all, steps / ranks);
  OperatorFacts operators;
  Places of_events;
  data::parallel_tasks(threads, {[&] { operators = gather_operators(all); },
                                 [&] { of_events = gather_events(all, steps, facts); },
                                 [&] { facts.places = longest_places(all); }});
  merge(of_events, facts.places);
  add_operators(operators, facts);
  return facts;
}

}  // namespace sidestream::advice

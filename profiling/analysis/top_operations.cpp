#include "profiling/analysis/top_operations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "profiling/analysis/collective_list.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/host_activity.hpp"
#include "profiling/analysis/own_work.hpp"
#include "profiling/analysis/row_work.hpp"
#include "profiling/analysis/step_rows.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

constexpr std::size_t kDeviceKinds = 3;

using ByShapes = std::map<std::array<std::string, 3>, double>;  // operator, shapes, types: FLOPs

// Of products, else of elements: a roofline asks for either.
std::optional<double> arithmetic_of(const OperatorWork& work) {
  return work.flops ? work.flops : work.element_flops;
}

struct OperationSums {
  std::int64_t calls = 0, total_ns = 0;
  KnownWork flops, bytes;
  bool bytes_at_least = false;
  ByShapes shaped;
  double occupancy = 0, occupied_ns = 0;

  void add(const OperatorWork& work, std::int64_t duration_ns) {
    flops.add(arithmetic_of(work), duration_ns);
    bytes.add(work.bytes, duration_ns);
    bytes_at_least = bytes_at_least || work.bytes_at_least;
  }
  void add(const OperationSums& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    flops.add(other.flops.total(), other.flops.time_ns);
    bytes.add(other.bytes.total(), other.bytes.time_ns);
    bytes_at_least = bytes_at_least || other.bytes_at_least;
    for (const auto& [shapes, amount] : other.shaped) shaped[shapes] += amount;
    occupancy += other.occupancy;
    occupied_ns += other.occupied_ns;
  }
};
using ByName = std::map<std::pair<std::string, Kind>, OperationSums>;

OperatorWork work_of_collective(const RankTimeline& timeline, std::size_t row) {
  const std::int64_t bytes = collective_facts(timeline, row).bytes;
  if (bytes <= 0) return {};
  return {.bytes = static_cast<double>(bytes)};
}

OperatorWork work_of_copy(const RankTimeline& timeline, std::size_t row) {
  const auto detail = timeline.device(row);
  if (timeline.collective(row) != nullptr) return work_of_collective(timeline, row);
  if (!detail || timeline.kind(row) == Kind::kKernel || detail->bytes == 0) return {};
  return {.bytes = static_cast<double>(detail->bytes)};
}

// Steps in which an operator began. Device work is never without its profiler.
std::vector<Interval> profiled_windows(const RankView& rank) {
  const bool on_device = rank.activity.where == Where::kDevice;
  const trace::RankTimeline& timeline = *rank.timeline;
  std::vector<bool> profiled(rank.steps.size(), on_device);
  for (std::size_t row = 0; row < timeline.size() && !on_device; ++row) {
    if (timeline.kind(row) != Kind::kOperator) continue;
    const StepRow* const step = rank.step_at(timeline.start_ns(row));
    if (step != nullptr) profiled[static_cast<std::size_t>(step - rank.steps.data())] = true;
  }
  std::vector<Interval> windows;
  for (std::size_t step = 0; step < profiled.size(); ++step) {
    if (profiled[step] && rank.counts(rank.steps[step])) windows.push_back(rank.steps[step].window);
  }
  return windows;
}

// FLOPs of one rank by the ids of their texts: the texts are copied once, not for every call.
class ShapeCount {
 public:
  explicit ShapeCount(const RankTimeline& timeline) : timeline_(timeline) {}

  // `key` is what the sums are kept by, `row` the operator that had the work.
  void add(std::size_t key, std::size_t row, const OperatorWork& work) {
    const auto detail = timeline_.host(row);
    const auto flops = arithmetic_of(work);
    if (!detail || !flops) return;
    flops_[{key, timeline_.name_id(row), detail->shapes, detail->types}] += *flops;
  }
  template <typename SumsOf>
  void move_to(SumsOf sums_of) const {
    for (const auto& [key, flops] : flops_) {
      const auto& [place, name, shapes, types] = key;
      sums_of(place).shaped[{text(name), text(shapes), text(types)}] += flops;
    }
  }

 private:
  std::string text(trace::NameId id) const { return std::string(timeline_.names[id]); }

  const RankTimeline& timeline_;
  std::map<std::tuple<std::size_t, trace::NameId, trace::NameId, trace::NameId>, double> flops_;
};

void add_occupancy(const RankTimeline& timeline, std::size_t row, OperationSums& sums) {
  const auto detail = timeline.device(row);
  if (!detail || detail->occupancy_percent < 0) return;
  const double duration = static_cast<double>(timeline.duration_ns(row));
  sums.occupancy += static_cast<double>(detail->occupancy_percent) * duration;
  sums.occupied_ns += duration;
}

void add_device_rank(const RankView& rank, const StepRows& rows, ByName& all) {
  const RankTimeline& timeline = *rank.timeline;
  std::vector<std::array<OperationSums, kDeviceKinds>> of_name(timeline.names.size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!trace::is_device_work(timeline.kind(row)) || !rows.contain(row)) continue;
    OperationSums& sums =
        of_name[timeline.name_id(row)][static_cast<std::size_t>(timeline.kind(row))];
    ++sums.calls;
    sums.total_ns += timeline.duration_ns(row);
    sums.add(work_of_copy(timeline, row), timeline.duration_ns(row));
    add_occupancy(timeline, row, sums);
  }
  if (has_shapes(timeline)) {
    ShapeCount shapes(timeline);
    visit_kernel_work(timeline, call_tree(timeline), [&](const KernelWork& one) {
      if (!rows.contain(one.row)) return;
      of_name[timeline.name_id(one.row)][0].add(one.work, timeline.duration_ns(one.row));
      shapes.add(timeline.name_id(one.row), one.operator_row, one.work);
    });
    shapes.move_to([&](std::size_t name) -> OperationSums& { return of_name[name][0]; });
  }
  for (trace::NameId id = 0; id < of_name.size(); ++id) {
    for (std::size_t kind = 0; kind < kDeviceKinds; ++kind) {
      const OperationSums& sums = of_name[id][kind];
      if (sums.calls > 0) all[{std::string(timeline.names[id]), static_cast<Kind>(kind)}].add(sums);
    }
  }
}

// Time is counted where it is spent.
void add_host_rank(const RankView& rank, const StepRows& rows, ByName& all) {
  const RankTimeline& timeline = *rank.timeline;
  ShapeCount shapes(timeline);
  const NameClasses classes(timeline.names);
  const bool launches_only = device_work_is_missing(timeline);
  const CallTree tree = call_tree(timeline);
  const std::vector<OwnWork> work = own_work(timeline, tree);
  for (std::size_t call = 0; call < tree.calls.size(); ++call) {
    const Call& one = tree.calls[call];
    if (!rows.contain(one.row)) continue;
    const Kind kind = timeline.kind(one.row);
    const NameClass what = classes[timeline.name_id(one.row)];
    const bool phase = kind == Kind::kHostRange && what == NameClass::kComputeRange;
    const bool collective = kind == Kind::kHostRange && what == NameClass::kCollectiveRange;
    if (kind != Kind::kOperator && !phase && !collective) continue;
    OperationSums& sums = all[{std::string(timeline.name(one.row)), kind}];
    ++sums.calls;
    sums.total_ns += one.self_ns;
    if (collective) {
      sums.add(work_of_collective(timeline, one.row), one.self_ns);
      continue;
    }
    const OwnWork& done = work[call];
    if (!launches_only) sums.add(done.work, done.time_ns);
    shapes.add(timeline.name_id(one.row), done.row, done.work);
  }
  shapes.move_to([&](std::size_t name) -> OperationSums& {
    return all[{std::string(timeline.names[static_cast<trace::NameId>(name)]), Kind::kOperator}];
  });
}

std::vector<ShapedWork> most_first(const ByShapes& shaped) {
  std::vector<ShapedWork> list;
  for (const auto& [texts, flops] : shaped)
    list.push_back(
        {.operator_name = texts[0], .shapes = texts[1], .types = texts[2], .flops = flops});
  std::stable_sort(list.begin(), list.end(),
                   [](const ShapedWork& a, const ShapedWork& b) { return a.flops > b.flops; });
  return list;
}

Operation operation_of(const std::string& name, Kind kind, const OperationSums& sums,
                       double all_ns) {
  const double total = static_cast<double>(sums.total_ns);
  return {.name = name,
          .kind = kind,
          .calls = sums.calls,
          .total_ns = sums.total_ns,
          .share = all_ns > 0 ? total / all_ns : 0,
          .flops = sums.flops,
          .bytes = sums.bytes,
          .bytes_at_least = sums.bytes_at_least,
          .shaped = most_first(sums.shaped),
          .occupancy_percent = sums.occupied_ns > 0
                                   ? std::optional(sums.occupancy / sums.occupied_ns)
                                   : std::nullopt};
}

}  // namespace

OperationSteps operation_steps(const std::vector<RankView>& ranks) {
  OperationSteps all, profiled{.profiled_only = true};
  const auto add = [](IntervalSet windows, OperationSteps& steps) {
    steps.length_ns += windows.length_ns();
    steps.windows.push_back(std::move(windows));
  };
  for (const RankView& rank : ranks) {
    std::vector<Interval> windows = profiled_windows(rank);
    profiled.steps += static_cast<std::int64_t>(windows.size());
    add(IntervalSet(std::move(windows)), profiled);
    add(rank.counted_windows(), all);
  }
  all.steps = counted_steps(ranks);
  return profiled.steps == 0 || profiled.steps == all.steps ? all : profiled;
}

std::vector<Operation> operations(const std::vector<RankView>& ranks, const OperationSteps& steps) {
  ByName all;
  for (std::size_t file = 0; file < ranks.size(); ++file) {
    const RankView& rank = ranks[file];
    const StepRows rows(rank, steps.windows[file]);
    if (rank.activity.where == Where::kDevice)
      add_device_rank(rank, rows, all);
    else
      add_host_rank(rank, rows, all);
  }
  double all_ns = 0;
  for (const auto& [key, sums] : all) all_ns += static_cast<double>(sums.total_ns);
  std::vector<Operation> list;
  for (const auto& [key, sums] : all)
    list.push_back(operation_of(key.first, key.second, sums, all_ns));
  std::stable_sort(list.begin(), list.end(),
                   [](const Operation& a, const Operation& b) { return a.total_ns > b.total_ns; });
  return list;
}

}  // namespace sidestream::analysis

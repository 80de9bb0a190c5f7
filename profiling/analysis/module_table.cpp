#include "profiling/analysis/module_table.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiling/ranges/phase_named.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;
using ModuleName = std::pair<std::string, std::string>;  // kind, name

constexpr std::string_view kBackwardPrefix = "autograd::engine::evaluate_function: ";

std::string kind_of_range(std::string_view name) {
  if (name.starts_with(ranges::kStepPrefix)) return "step";
  return ranges::phase_named(name) != nullptr ? "phase" : "layer";
}

bool has_module(const RankTimeline& timeline, std::size_t row) {
  const auto detail = timeline.host(row);
  return detail && detail->module != trace::kNoName;
}

ModuleName key_of(const RankTimeline& timeline, std::size_t row) {
  if (has_module(timeline, row))
    return {"module", std::string(timeline.names[timeline.host(row)->module])};
  const std::string_view name = timeline.name(row);
  const std::string kind = kind_of_range(name);
  return {kind, kind == "step" ? "ProfilerStep" : std::string(name)};
}

bool is_backward(const RankTimeline& timeline, std::size_t row) {
  return timeline.name(row).starts_with(kBackwardPrefix);
}

std::int64_t sequence_of(const RankTimeline& timeline, std::size_t row) {
  const auto detail = timeline.host(row);
  const bool counts = detail && timeline.kind(row) == Kind::kOperator;
  return counts ? detail->sequence : -1;
}

// Sequence number -> the forward operator with it, the first of them.
std::unordered_map<std::int64_t, std::size_t> forward_calls(const RankTimeline& timeline,
                                                            const CallTree& tree,
                                                            const std::vector<bool>& backward) {
  std::unordered_map<std::int64_t, std::size_t> calls;
  for (std::size_t i = 0; i < tree.calls.size(); ++i) {
    const std::int64_t sequence = sequence_of(timeline, tree.calls[i].row);
    if (sequence >= 0 && !backward[i]) calls.try_emplace(sequence, i);
  }
  return calls;
}

// What stands in the table: ranges, and operators that know their module.
bool counts(const RankTimeline& timeline, std::size_t row) {
  return timeline.kind(row) == Kind::kHostRange || has_module(timeline, row);
}

// Autograd runs a module's backward inside the range of the phase, on another thread or on this
// one: its operators know the module too, and are no forward.
std::vector<bool> inside_backward(const RankTimeline& timeline, const CallTree& tree) {
  std::vector<bool> inside(tree.calls.size(), false);
  for (std::size_t i = 0; i < tree.calls.size(); ++i) {
    const Call& call = tree.calls[i];
    inside[i] =
        is_backward(timeline, call.row) || (call.parent != kNoParent && inside[call.parent]);
  }
  return inside;
}

// The calls that one lies in, and how often each key is among them. Calls come in the order of the
// tree, each behind its parent: what is open is the way back to the root, however long that is.
class OpenCalls {
 public:
  explicit OpenCalls(const CallTree& tree) : tree_(tree) {}

  // True for the outermost one of its key.
  bool enter(std::size_t call, ModuleName key) {
    while (!open_.empty() && open_.back().call != tree_.calls[call].parent) {
      --*open_.back().count;
      open_.pop_back();
    }
    int& count = counts_[std::move(key)];
    open_.push_back({call, &count});
    return ++count == 1;
  }

 private:
  struct Open {
    std::size_t call;
    int* count;
  };

  const CallTree& tree_;
  std::map<ModuleName, int> counts_;
  std::vector<Open> open_;
};

// Of calls inside one another only the outermost of a key counts.
void add_forward(std::map<ModuleName, ModuleRow>& rows, const RankTimeline& timeline,
                 const CallTree& tree, const std::vector<bool>& backward) {
  OpenCalls open(tree);
  for (std::size_t i = 0; i < tree.calls.size(); ++i) {
    const std::size_t row = tree.calls[i].row;
    const bool forward = counts(timeline, row) && !(backward[i] && has_module(timeline, row));
    ModuleName key = forward ? key_of(timeline, row) : ModuleName();
    if (open.enter(i, key) && forward) rows[std::move(key)].sums.add(timeline, tree.calls[i]);
  }
}

// The layers and modules that the forward of this operator ran in, each once.
std::set<ModuleName> modules_around(const RankTimeline& timeline, const CallTree& tree,
                                    std::size_t call) {
  std::set<ModuleName> keys;
  for (std::size_t at = call; at != kNoParent; at = tree.calls[at].parent) {
    const std::size_t row = tree.calls[at].row;
    const bool layer =
        timeline.kind(row) == Kind::kHostRange && kind_of_range(timeline.name(row)) == "layer";
    if (layer || has_module(timeline, row)) keys.insert(key_of(timeline, row));
  }
  return keys;
}

void add_backward(std::map<ModuleName, ModuleRow>& rows, const RankTimeline& timeline,
                  const CallTree& tree, const std::vector<bool>& backward) {
  const auto forward = forward_calls(timeline, tree, backward);
  for (const Call& call : tree.calls) {
    if (!is_backward(timeline, call.row)) continue;
    const auto found = forward.find(sequence_of(timeline, call.row));
    // Without the forward operator in the trace there is what the node itself says.
    const std::set<ModuleName> keys =
        found != forward.end()           ? modules_around(timeline, tree, found->second)
        : has_module(timeline, call.row) ? std::set<ModuleName>{key_of(timeline, call.row)}
                                         : std::set<ModuleName>();
    for (const ModuleName& key : keys) {
      ModuleRow& module = rows[key];
      module.backward_host_ns += timeline.duration_ns(call.row);
      module.backward_device_ns += call.device_total_ns;
    }
  }
}

}  // namespace

std::vector<ModuleRow> module_table(const std::vector<RankView>& ranks,
                                    const std::vector<CallTree>& trees) {
  std::map<ModuleName, ModuleRow> rows;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankTimeline& timeline = *ranks[i].timeline;
    const std::vector<bool> backward = inside_backward(timeline, trees[i]);
    add_forward(rows, timeline, trees[i], backward);
    add_backward(rows, timeline, trees[i], backward);
  }
  std::vector<ModuleRow> table;
  for (auto& [key, row] : rows) {
    std::tie(row.kind, row.name) = key;
    table.push_back(std::move(row));
  }
  std::stable_sort(table.begin(), table.end(), [](const ModuleRow& a, const ModuleRow& b) {
    return std::tie(a.sums.device_total_ns, a.sums.host_total_ns) >
           std::tie(b.sums.device_total_ns, b.sums.host_total_ns);
  });
  return table;
}

}  // namespace sidestream::analysis

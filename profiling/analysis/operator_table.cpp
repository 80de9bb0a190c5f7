#include "profiling/analysis/operator_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "profiling/analysis/host_activity.hpp"
#include "profiling/analysis/row_work.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

bool longer(const CallSums& a, const CallSums& b) {
  return std::tie(a.device_total_ns, a.host_total_ns) >
         std::tie(b.device_total_ns, b.host_total_ns);
}

void add_sums(CallSums& into, const CallSums& more) {
  into.calls += more.calls;
  into.host_total_ns += more.host_total_ns;
  into.host_self_ns += more.host_self_ns;
  into.device_total_ns += more.device_total_ns;
  into.device_self_ns += more.device_self_ns;
}

// One rank by numbers first: texts are made once a row of the table, not once a call.
using RowKey = std::tuple<trace::NameId, trace::NameId, trace::NameId>;

std::map<RowKey, OperatorRow> rows_of_rank(const RankTimeline& timeline, const CallTree& tree) {
  std::map<RowKey, OperatorRow> rows;
  RowWork work(timeline);
  const bool launches_only = device_work_is_missing(timeline);
  for (const Call& call : tree.calls) {
    if (timeline.kind(call.row) != Kind::kOperator) continue;
    const auto detail = timeline.host(call.row);
    const RowKey key{timeline.name_id(call.row), detail ? detail->shapes : trace::kNoName,
                     detail ? detail->stack : trace::kNoName};
    OperatorRow& row = rows[key];
    row.sums.add(timeline, call);
    if (launches_only) continue;
    const std::int64_t time_ns =
        call.device_total_ns > 0 ? call.device_total_ns : timeline.duration_ns(call.row);
    const OperatorWork done = work.of(call.row);
    row.flops.add(done.flops, time_ns);
    row.bytes.add(done.bytes, time_ns);
  }
  return rows;
}

// Some writers put every number of a list on a line of its own.
std::string without_blanks(std::string_view list) {
  std::string text;
  for (const char one : list) {
    if (one != ' ' && one != '\n' && one != '\r' && one != '\t') text += one;
  }
  return text;
}

struct Node {
  CallSums sums;
  std::map<std::string, std::unique_ptr<Node>> inside;

  Node& child(const std::string& name) {
    std::unique_ptr<Node>& place = inside[name];
    if (place == nullptr) place = std::make_unique<Node>();
    return *place;
  }
};

// "iteration 17" as "iteration #".
std::string without_numbers(std::string_view name) {
  const auto is_digit = [](char one) { return '0' <= one && one <= '9'; };
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i]))
      text += name[i];
    else if (i == 0 || !is_digit(name[i - 1]))
      text += '#';
  }
  return text;
}

// What a place in the tree is called. Steps are one, and so are ranges that a program numbers
// without end, whose tree would grow with the run. Layers have numbers, too, but not as many.
class PlaceNames {
 public:
  explicit PlaceNames(const std::vector<RankView>& ranks) {
    std::map<std::string, std::set<std::string>> names;  // by what is left without numbers
    for (const RankView& rank : ranks) add_ranges(*rank.timeline, names);
    for (const auto& [pattern, alike] : names)
      if (alike.size() > kMostAlike) endless_.insert(pattern);
  }

  std::string of(const RankTimeline& timeline, std::size_t row) const {
    const std::string_view name = timeline.name(row);
    if (name.starts_with(ranges::kStepPrefix)) return "ProfilerStep";
    if (timeline.kind(row) == Kind::kHostRange && !endless_.empty()) {
      if (std::string pattern = without_numbers(name); endless_.contains(pattern)) return pattern;
    }
    return std::string(name);
  }

 private:
  static constexpr std::size_t kMostAlike = 256;

  static void add_ranges(const RankTimeline& timeline,
                         std::map<std::string, std::set<std::string>>& names) {
    std::vector<bool> seen(timeline.names.size(), false);
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      const trace::NameId id = timeline.name_id(row);
      if (timeline.kind(row) != Kind::kHostRange || seen[id]) continue;
      seen[id] = true;
      names[without_numbers(timeline.name(row))].emplace(timeline.name(row));
    }
  }

  std::set<std::string> endless_;
};

// Calls that nest deeper are part of the one above them.
constexpr int kDeepest = 64;

void add_tree(Node& root, const RankTimeline& timeline, const CallTree& tree,
              const PlaceNames& names) {
  struct Place {
    Node* node;
    int depth;
  };
  std::vector<Place> places;
  places.reserve(tree.calls.size());
  for (const Call& call : tree.calls) {
    const Place parent = call.parent == kNoParent ? Place{&root, 0} : places[call.parent];
    if (parent.depth == kDeepest) {
      places.push_back(parent);
      continue;
    }
    Node& node = parent.node->child(names.of(timeline, call.row));
    node.sums.add(timeline, call);
    places.push_back({&node, parent.depth + 1});
  }
}

// Without recursion: how deep calls nest is up to the file.
std::vector<TreeRow> flattened(const Node& root) {
  struct Open {
    const Node* node;
    std::vector<std::string> path;
  };
  std::vector<TreeRow> rows;
  std::vector<Open> open = {{&root, {}}};
  while (!open.empty()) {
    const Open at = std::move(open.back());
    open.pop_back();
    if (!at.path.empty()) rows.push_back({at.path, at.node->sums});
    std::vector<std::pair<std::string, const Node*>> inside;
    for (const auto& [name, node] : at.node->inside) inside.emplace_back(name, node.get());
    // The last one pushed comes out first.
    std::stable_sort(inside.begin(), inside.end(), [](const auto& a, const auto& b) {
      return longer(b.second->sums, a.second->sums);
    });
    for (const auto& [name, node] : inside) {
      open.push_back({node, at.path});
      open.back().path.push_back(name);
    }
  }
  return rows;
}

}  // namespace

void CallSums::add(const RankTimeline& timeline, const Call& call) {
  ++calls;
  host_total_ns += timeline.duration_ns(call.row);
  host_self_ns += call.self_ns;
  device_total_ns += call.device_total_ns;
  device_self_ns += call.device_self_ns;
}

std::vector<OperatorRow> operator_table(const std::vector<RankView>& ranks,
                                        const std::vector<CallTree>& trees) {
  std::map<std::tuple<std::string, std::string, std::string>, OperatorRow> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const trace::NameTable& names = ranks[i].timeline->names;
    for (const auto& [key, row] : rows_of_rank(*ranks[i].timeline, trees[i])) {
      const auto& [name, shapes, stack] = key;
      OperatorRow& into =
          all[{std::string(names[name]), without_blanks(names[shapes]), std::string(names[stack])}];
      add_sums(into.sums, row.sums);
      into.flops.add(row.flops.total(), row.flops.time_ns);
      into.bytes.add(row.bytes.total(), row.bytes.time_ns);
    }
  }
  std::vector<OperatorRow> table;
  for (auto& [key, row] : all) {
    std::tie(row.name, row.shapes, row.stack) = key;
    table.push_back(std::move(row));
  }
  std::stable_sort(table.begin(), table.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return longer(a.sums, b.sums);
  });
  return table;
}

std::vector<TreeRow> operator_tree(const std::vector<RankView>& ranks,
                                   const std::vector<CallTree>& trees) {
  Node root;
  const PlaceNames names(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    add_tree(root, *ranks[i].timeline, trees[i], names);
  return flattened(root);
}

}  // namespace sidestream::analysis

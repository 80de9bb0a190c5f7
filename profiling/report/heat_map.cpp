#include "profiling/report/heat_map.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "profiling/report/or_null.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::report {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  std::map<int, std::int64_t> own_ns = {};  // by rank
  double median_ns = 0;
};

// By step. Recordings of a rank may share one: the last of them counts.
std::map<std::optional<std::int64_t>, Column> columns_of(const analysis::Analysis& all,
                                                         const ShownSteps& shown) {
  std::map<std::optional<std::int64_t>, Column> columns;
  for (const analysis::RankView& rank : all.ranks) {
    for (const analysis::StepRow& row : rank.steps) {
      if (shown.contain(row.step)) columns[row.step].own_ns[row.rank] = row.own_ns();
    }
  }
  for (auto& [step, column] : columns) {
    std::vector<std::int64_t> values;
    for (const auto& [rank, own_ns] : column.own_ns) values.push_back(own_ns);
    column.median_ns = statistics::median(std::move(values));
  }
  return columns;
}

std::optional<std::int64_t> own_of(const Column& column, int rank) {
  const auto found = column.own_ns.find(rank);
  return found == column.own_ns.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> over_median(const Column& column, int rank) {
  const auto own_ns = own_of(column, rank);
  if (!own_ns || column.median_ns == 0) return std::nullopt;
  return static_cast<double>(*own_ns) / column.median_ns - 1;
}

}  // namespace

Json heat_map(const analysis::Analysis& all, const ShownSteps& shown) {
  const auto columns = columns_of(all, shown);
  std::set<int> ranks;
  Json steps = Json::array(), own = Json::array(), over = Json::array();
  for (const auto& [step, column] : columns) {
    steps.push_back(or_null(step));
    for (const auto& [rank, own_ns] : column.own_ns) ranks.insert(rank);
  }
  for (const int rank : ranks) {
    Json& own_row = own.emplace_back(Json::array());
    Json& over_row = over.emplace_back(Json::array());
    for (const auto& [step, column] : columns) {
      own_row.push_back(or_null(own_of(column, rank)));
      over_row.push_back(or_null(over_median(column, rank)));
    }
  }
  return {{"steps", std::move(steps)},
          {"ranks", ranks},
          {"own_ns", std::move(own)},
          {"over_median", std::move(over)}};
}

}  // namespace sidestream::report

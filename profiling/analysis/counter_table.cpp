#include "profiling/analysis/counter_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace sidestream::analysis {
namespace {

void add(CounterRow& row, double value) {
  row.least = row.samples == 0 ? value : std::min(row.least, value);
  row.most = row.samples == 0 ? value : std::max(row.most, value);
  ++row.samples;
  row.mean += (value - row.mean) / static_cast<double>(row.samples);
}

}  // namespace

std::vector<CounterRow> counter_table(const std::vector<RankView>& ranks) {
  std::map<std::tuple<int, std::string, std::string>, CounterRow> rows;
  for (const RankView& rank : ranks) {
    const trace::RankTimeline& timeline = *rank.timeline;
    std::map<std::pair<trace::NameId, trace::NameId>, CounterRow*> known;  // of this file
    for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
      const trace::CounterReading& reading = timeline.counters()[i];
      CounterRow*& row = known[{reading.counter, reading.series}];
      if (row == nullptr) {
        const std::string counter(timeline.names[reading.counter]);
        const std::string series(timeline.names[reading.series]);
        row = &rows[{timeline.info.rank, counter, series}];
        row->rank = timeline.info.rank;
        row->counter = counter;
        row->series = series;
      }
      add(*row, reading.value);
    }
  }
  std::vector<CounterRow> table;
  for (auto& [key, row] : rows) table.push_back(std::move(row));
  return table;
}

}  // namespace sidestream::analysis

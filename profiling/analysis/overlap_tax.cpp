#include "profiling/analysis/overlap_tax.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "profiling/analysis/event_class.hpp"

namespace sidestream::analysis {
namespace {

constexpr std::int64_t kLeastAlone = 3;  // calls, for a mean that stands for something

using Key =
    std::tuple<std::string_view, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>>;

struct TaxSums {
  std::int64_t alone = 0, beside = 0, alone_ns = 0, beside_ns = 0;
};

// By numbers first: texts are compared once a kernel, not once a call.
void add_rank(const RankView& rank, const IntervalSet& steps, std::map<Key, TaxSums>& kernels) {
  if (rank.activity.communication.empty()) return;
  const trace::RankTimeline& timeline = *rank.timeline;
  const NameClasses classes(timeline.names);
  std::unordered_map<std::uint64_t, TaxSums*> known;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const auto detail = timeline.device(row);
    if (timeline.kind(row) != trace::Kind::kKernel || !detail) continue;
    if (classes[timeline.name_id(row)] == NameClass::kCollectiveKernel) continue;
    if (!steps.contains(timeline.start_ns(row))) continue;
    const Interval interval{timeline.start_ns(row), timeline.end_ns(row)};
    const std::int64_t shared_ns = rank.activity.communication.length_within_ns(interval);
    TaxSums*& place = known[std::uint64_t{timeline.name_id(row)} << 32 | detail->shape];
    if (place == nullptr) place = &kernels[{timeline.name(row), detail->grid, detail->block}];
    TaxSums& sums = *place;
    if (shared_ns == 0) {
      ++sums.alone;
      sums.alone_ns += interval.length_ns();
    } else if (2 * shared_ns >= interval.length_ns()) {
      ++sums.beside;
      sums.beside_ns += interval.length_ns();
    }
  }
}

}  // namespace

OverlapTax overlap_tax(const std::vector<RankView>& ranks) {
  OverlapTax tax;
  std::map<Key, TaxSums> kernels;
  std::set<int> numbers;  // a rank has a file for each window
  std::vector<std::vector<Interval>> plain(ranks.size());
  visit_plain_steps(
      ranks, [&](std::size_t file, const StepRow& step) { plain[file].push_back(step.window); });
  for (std::size_t file = 0; file < ranks.size(); ++file) {
    const RankView& rank = ranks[file];
    const IntervalSet steps(std::move(plain[file]));
    numbers.insert(rank.timeline->info.rank);
    tax.hidden_ns += (rank.overlapped_communication & steps).length_ns();
    add_rank(rank, steps, kernels);
  }
  double sum_ns = 0;
  for (const auto& [key, sums] : kernels) {
    tax.beside_ns += sums.beside_ns;
    if (sums.alone < kLeastAlone || sums.beside == 0) continue;
    tax.judged_ns += sums.beside_ns;
    tax.kernels.push_back({std::string(std::get<0>(key)), sums.alone, sums.beside,
                           static_cast<double>(sums.alone_ns) / static_cast<double>(sums.alone),
                           static_cast<double>(sums.beside_ns) / static_cast<double>(sums.beside)});
    sum_ns += tax.kernels.back().tax_ns();
  }
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, numbers.size()));
  // Kernels that happen to be faster beside collectives are no gain of overlap.
  tax.tax_ns = static_cast<std::int64_t>(std::max(0.0, sum_ns) / static_cast<double>(count));
  for (std::int64_t* sum : {&tax.hidden_ns, &tax.judged_ns, &tax.beside_ns}) *sum /= count;
  std::sort(tax.kernels.begin(), tax.kernels.end(),
            [](const TaxedKernel& a, const TaxedKernel& b) { return a.tax_ns() > b.tax_ns(); });
  return tax;
}

}  // namespace sidestream::analysis

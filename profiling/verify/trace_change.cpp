#include "profiling/verify/trace_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "profiling/report/summary.hpp"
#include "profiling/report/table.hpp"
#include "profiling/verify/phase_change.hpp"

namespace sidestream::verify {
namespace {

using analysis::Analysis;

double ms(double nanoseconds) { return nanoseconds * 1e-6; }

std::vector<Part> parts_of(const report::MeanStep& base, const report::MeanStep& fresh) {
  const auto part = [](const char* name, std::int64_t left, std::int64_t right) {
    return Part{name, ms(static_cast<double>(left)), ms(static_cast<double>(right))};
  };
  return {part("compute", base.compute_ns, fresh.compute_ns),
          part("exposed communication", base.exposed_comm_ns, fresh.exposed_comm_ns),
          part("exposed copies", base.exposed_memcpy_ns, fresh.exposed_memcpy_ns),
          part("idle: waiting for data", base.idle.data_ns, fresh.idle.data_ns),
          part("idle: host too slow", base.idle.host_ns, fresh.idle.host_ns),
          part("idle: synchronisation", base.idle.sync_ns, fresh.idle.sync_ns),
          part("idle: in collectives", base.idle.comm_ns, fresh.idle.comm_ns),
          part("idle: locks", base.idle.lock_ns, fresh.idle.lock_ns),
          part("idle: not explained", base.idle.other_ns, fresh.idle.other_ns)};
}

// Both sides by name; the largest changes first, what is left as one entry.
class Joined {
 public:
  void add_base(const std::string& name, double value) { of(name).base_ms += value; }
  void add_fresh(const std::string& name, double value) { of(name).fresh_ms += value; }

  std::vector<Part> largest(std::size_t rows) const {
    std::vector<Part> all;
    for (const auto& [name, part] : parts_) all.push_back(part);
    std::stable_sort(all.begin(), all.end(), [](const Part& one, const Part& other) {
      return std::abs(one.change_ms()) > std::abs(other.change_ms());
    });
    if (all.size() <= rows) return all;
    Part rest{fmt::format("the other {}", all.size() - rows), 0, 0};
    for (std::size_t i = rows; i < all.size(); ++i) {
      rest.base_ms += all[i].base_ms;
      rest.fresh_ms += all[i].fresh_ms;
    }
    all.resize(rows);
    all.push_back(rest);
    return all;
  }

 private:
  Part& of(const std::string& name) {
    Part& part = parts_[name];
    part.name = name;
    return part;
  }
  std::map<std::string, Part> parts_;
};

// A bucket of another size holds other parameters: it is another one.
std::string name_of(const analysis::CollectiveRow& row) {
  std::string name = row.bucket < 0 ? row.name : fmt::format("{}, bucket {}", row.name, row.bucket);
  if (row.bytes >= 0)
    name += fmt::format(" ({})", report::bytes_text(static_cast<double>(row.bytes)));
  return name;
}

using Times = std::map<std::string, double>;  // milliseconds of one step of one rank

Times operations_of(const Analysis& all) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, all.operation_steps.steps));
  Times times;
  for (const analysis::Operation& one : all.operations)
    times[one.name] += ms(static_cast<double>(one.total_ns)) / steps;
  return times;
}

Times exposed_by_bucket(const Analysis& all) {
  const auto ranks = static_cast<double>(std::max<std::size_t>(1, all.set->ranks().size()));
  const double steps_of_one_rank =
      static_cast<double>(std::max<std::int64_t>(1, analysis::counted_steps(all.plain_ranks))) /
      ranks;
  Times times;
  for (const analysis::CollectiveRow& row : all.collectives)
    times[name_of(row)] += ms(static_cast<double>(row.exposed_ns)) / steps_of_one_rank;
  return times;
}

Joined joined(const Times& base, const Times& fresh) {
  Joined parts;
  for (const auto& [name, time_ms] : base) parts.add_base(name, time_ms);
  for (const auto& [name, time_ms] : fresh) parts.add_fresh(name, time_ms);
  return parts;
}

std::size_t windows_of(const Analysis& all) {
  std::set<std::string> windows;
  for (const analysis::RankView& rank : all.ranks) windows.insert(rank.timeline->info.window);
  return windows.size();
}

// Below 0 where operations run beside each other: their time is theirs, and that of the step is
// one.
Part no_operation(const report::MeanStep& base, const report::MeanStep& fresh,
                  const std::vector<Part>& operations) {
  Part rest{"no operation, or several at once", ms(static_cast<double>(base.window_ns)),
            ms(static_cast<double>(fresh.window_ns))};
  for (const Part& one : operations) {
    rest.base_ms -= one.base_ms;
    rest.fresh_ms -= one.fresh_ms;
  }
  if (rest.base_ms < 0 || rest.fresh_ms < 0)
    rest.name = "no operation; below 0: several ran at once, and count twice";
  return rest;
}

}  // namespace

TraceChange compare_traces(const Analysis& base, const Analysis& fresh, std::size_t rows) {
  const report::MeanStep left = report::mean_step(base.ranks),
                         right = report::mean_step(fresh.ranks);
  TraceChange change{.base_steps = left.steps,
                     .fresh_steps = right.steps,
                     .base_windows = windows_of(base),
                     .fresh_windows = windows_of(fresh)};
  if (left.steps == 0 || right.steps == 0) return change;
  change.parts = parts_of(left, right);
  change.phases = phases_of_change(base, fresh);
  change.operations = joined(operations_of(base), operations_of(fresh)).largest(rows);
  change.operations.push_back(no_operation(left, right, change.operations));
  change.collectives = joined(exposed_by_bucket(base), exposed_by_bucket(fresh)).largest(rows);
  return change;
}

}  // namespace sidestream::verify

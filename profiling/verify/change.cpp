#include "profiling/verify/change.hpp"

namespace sidestream::verify {
namespace {

struct Figures {
  std::vector<double> step_ms, reader_ms, exposed_ms;

  bool add(const RecordedRun& run, int warm_up) {
    const auto typical = typical_step(run, warm_up);
    if (!typical) return false;
    step_ms.push_back(typical->step_ms);
    reader_ms.push_back(typical->reader_ms);
    if (run.exposed_comm_ms) exposed_ms.push_back(*run.exposed_comm_ms);
    return true;
  }
};

// Medians of both sides, and the interval of what changes from one side of a pair to the other.
Part part_of(const char* name, const std::vector<double>& base, const std::vector<double>& fresh) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < base.size(); ++i) pairs.push_back({base[i], fresh[i]});
  return {name, median_of(base), median_of(fresh), difference_interval(pairs)};
}

// What is left of each run's step without these parts of it.
std::vector<double> rest_of(const Figures& side, bool with_exposed) {
  std::vector<double> rest;
  for (std::size_t i = 0; i < side.step_ms.size(); ++i)
    rest.push_back(side.step_ms[i] - side.reader_ms[i] - (with_exposed ? side.exposed_ms[i] : 0));
  return rest;
}

}  // namespace

std::vector<Part> parts_of_change(const std::vector<RunPair>& pairs, int warm_up) {
  Figures base, fresh;
  for (const auto& [left, right] : pairs) {
    if (!base.add(*left, warm_up) || !fresh.add(*right, warm_up)) return {};
  }
  if (base.step_ms.empty()) return {};
  const std::size_t runs = pairs.size();
  const bool exposed = base.exposed_ms.size() == runs && fresh.exposed_ms.size() == runs;
  std::vector<Part> parts = {part_of("waiting for data", base.reader_ms, fresh.reader_ms)};
  if (exposed) parts.push_back(part_of("exposed communication", base.exposed_ms, fresh.exposed_ms));
  Part rest =
      part_of(exposed ? "rest: forward, backward, optimizer" : "rest: all but waiting for data",
              rest_of(base, exposed), rest_of(fresh, exposed));
  // Medians of parts add up to no median: the rest is what the others leave of it.
  rest.base_ms = median_of(base.step_ms);
  rest.fresh_ms = median_of(fresh.step_ms);
  for (const Part& part : parts) {
    rest.base_ms -= part.base_ms;
    rest.fresh_ms -= part.fresh_ms;
  }
  parts.push_back(rest);
  return parts;
}

}  // namespace sidestream::verify

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

}  // namespace

std::vector<Part> parts_of_change(const std::vector<RunPair>& pairs, int warm_up) {
  Figures base, fresh;
  for (const auto& [left, right] : pairs) {
    if (!base.add(*left, warm_up) || !fresh.add(*right, warm_up)) return {};
  }
  if (base.step_ms.empty()) return {};
  std::vector<Part> parts = {
      {"waiting for data", median_of(base.reader_ms), median_of(fresh.reader_ms)}};
  const std::size_t runs = pairs.size();
  if (base.exposed_ms.size() == runs && fresh.exposed_ms.size() == runs)
    parts.push_back(
        {"exposed communication", median_of(base.exposed_ms), median_of(fresh.exposed_ms)});
  Part rest{
      parts.size() == 2 ? "rest: forward, backward, optimizer" : "rest: all but waiting for data",
      median_of(base.step_ms), median_of(fresh.step_ms)};
  for (const Part& part : parts) {
    rest.base_ms -= part.base_ms;
    rest.fresh_ms -= part.fresh_ms;
  }
  parts.push_back(rest);
  return parts;
}

}  // namespace sidestream::verify

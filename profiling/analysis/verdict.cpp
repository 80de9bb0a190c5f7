#include "profiling/analysis/verdict.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sidestream::analysis {

std::optional<Verdict> find_verdict(const std::vector<RankView>& ranks) {
  double window = 0, io = 0, comm = 0, gpu = 0;
  for (const StepRow* step : plain_steps(ranks)) {
    window += static_cast<double>(step->budget.window_ns);
    io += static_cast<double>(step->idle.data_ns);
    comm += static_cast<double>(step->budget.exposed_comm_ns + step->idle.comm_ns);
    gpu += static_cast<double>(step->budget.compute_ns + step->budget.exposed_memcpy_ns);
  }
  if (window <= 0) return std::nullopt;
  Verdict verdict{
      .word = {}, .io = io / window, .cpu = 0, .gpu = gpu / window, .comm = comm / window};
  verdict.cpu = std::max(0.0, 1 - verdict.io - verdict.gpu - verdict.comm);
  const std::array<std::pair<double, const char*>, 4> shares = {
      {{verdict.gpu, "gpu"}, {verdict.comm, "comm"}, {verdict.io, "io"}, {verdict.cpu, "cpu"}}};
  verdict.word = std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
                   return a.first < b.first;
                 })->second;
  return verdict;
}

}  // namespace sidestream::analysis

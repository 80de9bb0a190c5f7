#include "profiling/record/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sidestream::record {
namespace {

struct Share {
  double value;
  const char* word;
  const char* text;
};

std::array<Share, 4> shares_of(const PhaseVerdict& verdict) {
  return {{{verdict.gpu, "gpu", "computing"},
           {verdict.comm, "comm", "collectives"},
           {verdict.io, "io", "data"},
           {verdict.cpu, "cpu", "other work of the host"}}};
}

// The first of equals.
Share largest(const PhaseVerdict& verdict) {
  const auto shares = shares_of(verdict);
  return *std::max_element(shares.begin(), shares.end(),
                           [](const Share& a, const Share& b) { return a.value < b.value; });
}

}  // namespace

std::optional<PhaseVerdict> find_verdict(std::span<const PhaseTotals> ranks) {
  PhaseTotals sum;
  for (const PhaseTotals& rank : ranks) {
    sum.steps = std::max(sum.steps, rank.steps);
    sum.window_ns += rank.window_ns;
    sum.io_ns += rank.io_ns;
    sum.compute_ns += rank.compute_ns;
    sum.comm_ns += rank.comm_ns;
  }
  if (sum.window_ns <= 0) return std::nullopt;
  const auto share = [&](std::int64_t part_ns) {
    return static_cast<double>(part_ns) / static_cast<double>(sum.window_ns);
  };
  PhaseVerdict verdict{.word = {},
                       .io = share(sum.io_ns),
                       .cpu = share(sum.other_ns()),
                       .gpu = share(sum.compute_ns),
                       .comm = share(sum.comm_ns),
                       .steps = sum.steps};
  verdict.word = largest(verdict).word;
  return verdict;
}

std::string describe(const PhaseVerdict& verdict) {
  std::string text;
  for (const Share& share : shares_of(verdict)) {
    text += (text.empty() ? "" : ", ") + std::string(share.text) + " " +
            std::to_string(std::lround(share.value * 100)) + " %";
  }
  return text + ": bound by " + largest(verdict).text;
}

}  // namespace sidestream::record

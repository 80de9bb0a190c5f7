// What overlap costs the compute beside it: each kernel alone against the same kernel (name, grid,
// block) beside a collective, in the same run. Net gain = communication that overlap hides - tax.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct TaxedKernel {
  std::string name;
  std::int64_t alone = 0;   // calls
  std::int64_t beside = 0;  // calls with at least half of their time beside a collective
  double mean_alone_ns = 0;
  double mean_beside_ns = 0;

  double tax_ns() const { return (mean_beside_ns - mean_alone_ns) * static_cast<double>(beside); }
};

struct OverlapTax {
  // Overlapped communication; like all below of one rank, in steps without tags.
  std::int64_t hidden_ns = 0;
  std::int64_t tax_ns = 0;           // of the kernels that ran both ways
  std::int64_t judged_ns = 0;        // time beside collectives of these kernels
  std::int64_t beside_ns = 0;        // time beside collectives of all kernels
  std::vector<TaxedKernel> kernels;  // of all ranks, the highest tax first

  std::int64_t net_gain_ns() const { return hidden_ns - tax_ns; }
};

OverlapTax overlap_tax(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis

// Every kind of collective: how much of it hid behind
// compute, what the transfer took and what was waiting.
//
// Sums of one rank, averaged over the ranks, so that they compare with a step, of what the ranks
// count. Overlapped, exposed and blocking are of the time inside their steps, as the budget of a
// step is.
// Time in which several collectives of a rank are in flight counts as overlapped, exposed and
// blocking of the one that began first, and of no other: the rows of a rank add up to its steps
// exactly. Total, transfer and waiting are each collective's own.
// Algorithm bandwidth is bytes over transfer time; bus bandwidth multiplies it with
// what the operation has to move at least (nccl-tests, doc/PERFORMANCE.md):
// all-reduce 2 (n - 1) / n, reduce-scatter, all-gather and all-to-all (n - 1) / n,
// else 1. Bytes are those of one rank's input, the largest where ranks send different sizes; of an
// all-gather all inputs together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct CollectiveRow {
  std::string name;
  std::int64_t bucket = -1;  // below 0: none
  std::int64_t bytes = -1;   // below 0: not known
  std::int64_t count = 0;    // of one rank; 1 where it is less in the mean
  int group_size = 0;        // ranks that take part; 0: the traces do not say
  std::int64_t total_ns = 0;
  std::int64_t exposed_ns = 0;
  std::int64_t overlapped_ns = 0;
  // Of the exposed part: the host waited, on a device by a wait that is on record.
  std::int64_t blocking_ns = 0;
  // Of total: those that could not be matched over ranks, transfer and waiting together.
  std::int64_t unmatched_ns = 0;
  // Only of what could be matched over ranks.
  std::optional<std::int64_t> transfer_ns = {};
  std::optional<std::int64_t> wait_ns = {};
  std::optional<double> alg_gb_per_s = {};
  std::optional<double> bus_gb_per_s = {};
  std::optional<int> slowest_rank = {};  // came last most often
};

// Whether a bucket has several rows because its size changed: our trainer builds the order of the
// buckets anew after the first step, whose collectives then stand in rows of their own.
bool have_sizes_changed(const std::vector<CollectiveRow>& rows);

std::vector<CollectiveRow> collective_table(const std::vector<RankView>& ranks,
                                            const CollectiveMatches& matches);

}  // namespace sidestream::analysis

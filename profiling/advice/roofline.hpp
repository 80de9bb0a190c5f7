// How near the longest operations come to what the machine can do, and why not nearer, in words.
//
// Works on the `top_ops` of a report.json: time, FLOPs and bytes from shapes. The roof is that of
// the type that the operation computes with. Counters of Nsight Compute replace the estimates where
// they are there.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "profiling/advice/facts.hpp"
#include "profiling/advice/ncu_csv.hpp"

namespace sidestream::advice {

// One operation against its roof: min(peak, intensity x memory bandwidth) of Williams, Waterman and
// Patterson, 2009. Empty: not measured.
struct RooflinePoint {
  std::string name;
  std::int64_t calls = 0;
  double total_ns = 0;
  double share = 0;  // of the time of all operations
  std::optional<double> step_share = {};
  std::string dtype = {};  // that it computes with; empty: not known, and then there is no roof
  std::optional<double> flops_per_s = {};
  std::optional<double> bytes_per_s = {};
  bool bytes_at_least = false;                   // results of some calls are not in it
  std::optional<double> intensity = {};          // FLOP per byte
  std::optional<double> share_of_roof = {};      // what is reached of what the roof allows
  std::optional<double> occupancy_percent = {};  // the profiler's estimate
  std::string occupancy_limiter = {};            // where it is low; empty: not known
  std::string bound = {};  // "memory", "compute", "communication", "launch"; empty
  std::string cause = {};  // in words; empty: nothing is known
  std::optional<NcuCounters> counters = {};
};

RooflinePoint place_operation(const nlohmann::ordered_json& operation, const Facts& facts,
                              const NcuByKernel& counters);

// Fills `roofline_bound`, `cause`, `occupancy_limiter`, `share_of_roof`, `dtype`, `intensity` and
// `counters` of every entry of top_ops; rates that counters replace are replaced.
void add_rooflines(nlohmann::ordered_json& report, const Facts& facts, const NcuByKernel& counters);

}  // namespace sidestream::advice

// How near the longest operations come to what the machine can do, and why not nearer, in words.
//
// Works on the `top_ops` of a report.json: time, FLOPs and bytes from shapes. Counters of Nsight
// Compute replace the estimates where they are there.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiling/advice/facts.hpp"
#include "profiling/advice/ncu_csv.hpp"

namespace sidestream::advice {

// One operation against its roof: min(peak, intensity x memory bandwidth) of Williams, Waterman and
// Patterson, 2009. Empty: not measured.
struct RooflinePoint {
  std::string name;
  std::int64_t calls = 0;
  double total_ns = 0;
  double share = 0;
  std::optional<double> flops_per_s = {};
  std::optional<double> bytes_per_s = {};
  std::optional<double> intensity = {};      // FLOP per byte
  std::optional<double> share_of_roof = {};  // what is reached of what the roof allows
  std::string bound = {};  // "memory", "compute", "communication", "launch"; empty
  std::string cause = {};  // in words; empty: nothing is known
  std::optional<NcuCounters> counters = {};
};

using NcuByFunction = std::map<std::string, NcuCounters>;

RooflinePoint place_operation(const nlohmann::ordered_json& operation, const Facts& facts,
                              const NcuByFunction& counters);

// Fills `roofline_bound` and `cause` of every entry of top_ops.
void add_rooflines(nlohmann::ordered_json& report, const Facts& facts,
                   const NcuByFunction& counters);

// The command that reads the counters of exactly these kernels; empty when none of them is one.
// `program` is the command line to measure.
std::string ncu_command(const std::vector<std::string>& kernels, const std::string& program);

}  // namespace sidestream::advice

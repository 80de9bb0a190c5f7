// What the profiled run of one side says, cut down to what the report of a comparison shows. The
// whole of it is the report.json of that run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::verify {

// One of the operations that take the most time.
struct TopOperation {
  std::string name;
  double step_ms = 0;  // of a step of one rank
  double share_of_step = 0;
  std::optional<double> flops_per_s = {};
  std::optional<double> bytes_per_s = {};
  std::string bound = {};                    // "compute", "memory", ...; empty: not known
  std::optional<double> share_of_roof = {};  // where there is a roof
  std::optional<double> room_ms = {};        // what would vanish at the roof: step_ms (1 - share)
  std::string cause = {};                    // empty: not known
};

struct AdviceLine {
  std::string title;
  std::optional<double> bound_pct = {};  // of the step
  std::string evidence = {};
  std::string fix = {};
  std::string false_if = {};
  std::string check = {};    // what to look at afterwards
  bool comes_first = false;  // whatever its bound: the others may follow from it
};

struct BudgetPart {
  std::string name;
  double step_ms = 0;
};

struct SideProfile {
  std::string folder = {};               // run directory, or what was given for one
  std::vector<std::string> urgent = {};  // before any mean: a hang, far longer steps, a late rank
  std::string verdict = {};              // what bounds the side, in words; empty: not known
  double step_ms = 0;                    // mean of the profiled steps
  bool profiler_off = false;             // they are steps of a recording
  bool has_roofs = false;                // of this machine or its datasheet
  std::vector<BudgetPart> budget = {};
  std::vector<TopOperation> top = {};
  std::vector<AdviceLine> advice = {};
};

// `report` is a report.json with advice and rooflines. Throws core::Error for one of another form.
SideProfile side_profile(const std::string& folder, const nlohmann::ordered_json& report,
                         std::size_t operations = 5);

}  // namespace sidestream::verify

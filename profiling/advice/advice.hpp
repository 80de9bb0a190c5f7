// The advice: all rules on the facts of one run, the largest bound first, after what the others may
// follow from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiling/advice/rule.hpp"
#include "profiling/report/missing_figures.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::advice {

struct Finding {
  const Rule* rule = nullptr;
  Found what = {};
  int count = 1;                    // merged ones: of so many ranks, unless it is of all together
  std::vector<int> ranks = {};      // that show it; empty: it is of all together
  std::optional<int> shown = {};    // of several, the worst one: bound and evidence are its own
  std::optional<Place> place = {};  // where to look in the timeline
  bool foreign = false;             // of a trace of another program: in its words

  std::string fix() const;
  std::string false_if() const;
  std::string check() const;
};

struct NotMeasured {
  std::string rule;
  std::string needs;
};

struct Advice {
  std::vector<Finding> findings = {};
  std::vector<NotMeasured> not_measured = {};
  std::vector<std::string> nothing_found = {};  // rules that looked
  bool foreign = false;                         // as of the facts
  Recorder recorder = Recorder::kKineto;        // the same
  std::int64_t first_step_ns = 0;               // that places are told from
};

const std::vector<Rule>& all_rules();

// What a rule with figures of the step finds in the mean of all ranks is looked for on each of
// them: a finding of a few says which, and how many.
Advice advise(const Facts& facts);

// Whether the rule says that steps wait for input: a run on one batch takes that away, and proves
// or refutes it.
bool is_waiting_for_input(const Rule& rule);

// The first that is of the run itself and not, like the load of others, of its machine. Null: none.
const Finding* first_of_run(const std::vector<Finding>& findings);

// Findings of the same rule and fix, on several ranks, become one, with the evidence of the largest
// bound and without a rank of its own. By bound, after those of rules that come before all: what
// else is found may follow from these, and reports say so.
std::vector<Finding> merged(std::vector<Finding> findings);

// Fills `advice` and `nothing_found` of a report.json and adds to its `not_measured`.
void add_to_report(const Advice& advice, nlohmann::ordered_json& report);

// `figures`: what the report could not measure, said beside the rules that could not look.
std::string advice_text(const Advice& advice, const report::TextStyle& style,
                        const std::vector<report::MissingFigure>& figures = {});

}  // namespace sidestream::advice

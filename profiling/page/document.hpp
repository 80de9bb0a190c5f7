// What the page shows, as one JSON document: report.json of every run, the tables, the timeline,
// the verification.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiling/analysis/details.hpp"
#include "profiling/report/shown_steps.hpp"

namespace sidestream::page {

// One run with traces. `report` is what report.json holds; the page needs neither its `timeline`
// nor its `tables`; its steps are `shown`.
nlohmann::ordered_json run_document(const std::string& label, const analysis::Analysis& all,
                                    const analysis::Details& details, nlohmann::ordered_json report,
                                    const report::ShownSteps& shown = {});

// The same with what report.json begins with and nothing else: for a page of few sections.
nlohmann::ordered_json short_run_document(const std::string& label, nlohmann::ordered_json report);

struct DocumentParts {
  std::string title = {};
  std::vector<std::string> sections = {};          // by id; empty: all
  std::vector<nlohmann::ordered_json> runs = {};   // by run_document
  nlohmann::ordered_json verification = nullptr;   // JSON of a verification
  nlohmann::ordered_json trace_change = nullptr;   // "trace" of a comparison
  std::vector<std::string> counter_commands = {};  // that read the counters of the longest kernels
};

nlohmann::ordered_json document_of(DocumentParts parts);

}  // namespace sidestream::page

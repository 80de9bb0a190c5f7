// The tables behind the report, whole and in plain numbers, by the name of their file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "profiling/analysis/details.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::report {

struct Findings {
  const analysis::Analysis& analysis;
  const analysis::Details& details;
};

struct TableSource {
  std::string name;
  std::string what;  // for the help
  Table (*make)(const Findings& findings);
};

inline constexpr const char* kEventsTable = "events";

// In the order in which people read them.
const std::vector<TableSource>& all_tables();
// Throws core::ConfigError with the names that there are.
const TableSource& table_named(const std::string& name);

Table overview_table(const Findings& findings);
Table steps_table(const Findings& findings);
Table ranks_table(const Findings& findings);
Table collectives_table(const Findings& findings);
Table distributed_table(const Findings& findings);
Table data_table(const Findings& findings);
Table counters_table(const Findings& findings);
Table kernels_table(const Findings& findings);
Table overlap_tax_table(const Findings& findings);
Table operators_table(const Findings& findings);
Table operator_tree_table(const Findings& findings);
Table modules_table(const Findings& findings);
Table memory_peaks_table(const Findings& findings);
Table memory_categories_table(const Findings& findings);
Table memory_curve_table(const Findings& findings);
Table memory_events_table(const Findings& findings);
// The longest events of all ranks that are no steps.
Table events_table(const Findings& findings);

// Every event, written as it goes: too many for a table in memory.
void write_event_list(const analysis::Analysis& analysis, const std::filesystem::path& file);

}  // namespace sidestream::report

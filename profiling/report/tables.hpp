// The tables behind the report, whole and in plain numbers, by the name of their file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::report {

using TableMaker = Table (*)(const analysis::Analysis& analysis);

const std::vector<std::pair<std::string, TableMaker>>& all_tables();

Table steps_table(const analysis::Analysis& analysis);
Table collectives_table(const analysis::Analysis& analysis);
Table distributed_table(const analysis::Analysis& analysis);
Table data_table(const analysis::Analysis& analysis);
Table kernels_table(const analysis::Analysis& analysis);
Table overlap_tax_table(const analysis::Analysis& analysis);
Table operators_table(const analysis::Analysis& analysis);
Table operator_tree_table(const analysis::Analysis& analysis);
Table modules_table(const analysis::Analysis& analysis);
Table memory_table(const analysis::Analysis& analysis);
Table memory_peaks_table(const analysis::Analysis& analysis);

// Every event, written as it goes: too many for a table in memory.
void write_event_list(const analysis::Analysis& analysis, const std::filesystem::path& file);

}  // namespace sidestream::report

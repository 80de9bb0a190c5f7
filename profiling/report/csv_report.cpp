#include "profiling/report/csv_report.hpp"

#include "core/base/file.hpp"
#include "profiling/report/tables.hpp"

namespace sidestream::report {

void write_csv_folder(const analysis::Analysis& all, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const analysis::Details details = analysis::look_closer(all);
  for (const TableSource& table : all_tables())
    core::write_file_atomically(folder / (table.name + ".csv"), csv_of(table.make({all, details})));
  write_event_list(all, folder / "events.csv");
}

}  // namespace sidestream::report

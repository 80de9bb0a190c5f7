#include "profiling/report/csv_report.hpp"

#include <cerrno>
#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::report {

void write_csv_folder(const Findings& findings, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    errno = failed.value();
    core::fail_to_write("cannot create", folder);
  }
  for (const TableSource& table : all_tables()) {
    if (table.name == kEventsTable) continue;  // here all of them, not the longest
    core::write_file_atomically(folder / (table.name + ".csv"), csv_of(table.make(findings)));
  }
  write_event_list(findings.analysis, folder / "events.csv");
}

}  // namespace sidestream::report

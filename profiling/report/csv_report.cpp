#include "profiling/report/csv_report.hpp"

#include <cerrno>
#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::report {
namespace {

std::filesystem::path csv_file_in(const std::filesystem::path& folder, const std::string& table) {
  return folder / (table + ".csv");
}

}  // namespace

std::vector<std::filesystem::path> csv_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const TableSource& table : all_tables()) files.push_back(csv_file_in(folder, table.name));
  return files;
}

void write_csv_folder(const Findings& findings, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    errno = failed.value();
    core::fail_to_write("cannot create", folder);
  }
  for (const TableSource& table : all_tables()) {
    if (table.name == kEventsTable) continue;  // here all of them, not the longest
    core::write_file_atomically(csv_file_in(folder, table.name), csv_of(table.make(findings)));
  }
  write_event_list(findings.analysis, csv_file_in(folder, kEventsTable));
}

}  // namespace sidestream::report

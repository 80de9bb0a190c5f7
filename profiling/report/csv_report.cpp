#include "profiling/report/csv_report.hpp"

#include "core/base/file.hpp"
#include "profiling/report/tables.hpp"

namespace sidestream::report {

void write_csv_folder(const analysis::Analysis& all, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, make] : all_tables())
    core::write_file_atomically(folder / (name + ".csv"), csv_of(make(all)));
  write_event_list(all, folder / "events.csv");
}

}  // namespace sidestream::report

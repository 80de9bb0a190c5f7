#include "launch/trace/pages.hpp"

#include <utility>

#include "core/base/file.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"

namespace sidestream::launch {

void write_report_page(const std::filesystem::path& file, const std::string& label,
                       ExaminedRun& run, const advice::NcuByKernel& counters) {
  page::DocumentParts parts{.title = label};
  parts.runs.push_back(run.page_part(label, counters));
  core::write_file_atomically(file, page::html_page(page::document_of(std::move(parts))));
}

void write_roofline_page(const std::filesystem::path& file, const std::string& label,
                         const ExaminedRun& run, const advice::NcuByKernel& counters,
                         std::vector<std::string> commands) {
  page::DocumentParts parts{.title = "Roofline: " + label,
                            .sections = {"top", "import"},
                            .counter_commands = std::move(commands)};
  parts.runs.push_back(page::short_run_document(label, run.summary(counters)));
  core::write_file_atomically(file, page::html_page(page::document_of(std::move(parts))));
}

}  // namespace sidestream::launch

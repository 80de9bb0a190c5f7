#include "launch/trace/pages.hpp"

#include "core/base/file.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"

namespace sidestream::launch {

void write_report_page(const std::filesystem::path& file,
                       const std::vector<std::filesystem::path>& inputs,
                       const analysis::Analysis& analysis, const AdvisedReport& advised) {
  const std::string label = inputs.front().lexically_normal().string();
  page::DocumentParts parts{.title = label, .ceilings = ceilings_json(advised.ceilings)};
  parts.runs.push_back(page::run_document(label, analysis, advised.json));
  core::write_file_atomically(file, page::html_page(page::document_of(std::move(parts))));
}

}  // namespace sidestream::launch

#include "launch/trace/loaded_traces.hpp"

#include <fmt/format.h>

#include "profiling/page/document.hpp"

namespace sidestream::launch {

LoadedTraces::LoadedTraces(const std::filesystem::path& from, int threads)
    : path(from),
      exports(trace::find_traces({from})),
      set(trace::load_traces(exports.files(), {.threads = threads})),
      analysis(analysis::analyse(set, threads)) {}

AdvisedReport LoadedTraces::advised() const {
  return advised_report({path}, analysis, report::read_run_metrics({path}));
}

verify::Profiles profiles_of(const LoadedTraces& base, const AdvisedReport& base_report,
                             const LoadedTraces& fresh, const AdvisedReport& fresh_report) {
  return {.base = verify::side_profile(base.path.string(), base_report.json),
          .fresh = verify::side_profile(fresh.path.string(), fresh_report.json),
          .change = verify::compare_traces(base.analysis, fresh.analysis)};
}

nlohmann::ordered_json page_run(const std::string& side, const LoadedTraces& traces,
                                const AdvisedReport& advised) {
  const std::filesystem::path folder = traces.path.lexically_normal();
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename();
  return page::run_document(fmt::format("{}: {}", side, name), traces.analysis, advised.json);
}

}  // namespace sidestream::launch

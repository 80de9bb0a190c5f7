// The traces of one run of a comparison with all that is read out of them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "launch/trace/advised_report.hpp"
#include "launch/trace/nsys_export.hpp"
#include "profiling/trace/trace_set.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

struct LoadedTraces {
  std::filesystem::path path;
  NsysExports exports;
  trace::TraceSet set;
  analysis::Analysis analysis;  // of `set`: lives as long as it

  // Throws core::DataError for files that are no traces, or none.
  LoadedTraces(const std::filesystem::path& from, int threads);
  LoadedTraces(const LoadedTraces&) = delete;
  LoadedTraces& operator=(const LoadedTraces&) = delete;

  AdvisedReport advised() const;
};

// What the profiled runs of both sides say.
verify::Profiles profiles_of(const LoadedTraces& base, const AdvisedReport& base_report,
                             const LoadedTraces& fresh, const AdvisedReport& fresh_report);

// One run of the page, by the name of its side.
nlohmann::ordered_json page_run(const std::string& side, const LoadedTraces& traces,
                                const AdvisedReport& advised);

}  // namespace sidestream::launch

// A trace set and its analysis out of hand-made events.
#pragma once

#include <string>

#include "profiling/analysis/analysis.hpp"
#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::test {

struct Analysed {
  // `head`: keys before the events, each with a comma after it.
  explicit Analysed(const std::string& events, const std::string& head = "") {
    const auto file = write_text(scratch / "rank-0.json", trace_of(events).insert(1, head));
    set = trace::load_traces(trace::find_traces({file}), {.threads = 1});
    all = analysis::analyse(set, 1);
  }
  core::ScratchFolder scratch;
  trace::TraceSet set;
  analysis::Analysis all;
};

}  // namespace sidestream::test

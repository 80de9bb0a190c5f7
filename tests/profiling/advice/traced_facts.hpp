// The facts of a made-up trace, read from files as any other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "profiling/advice/facts.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/advice/trace_maker.hpp"

namespace sidestream::advice {

inline Facts facts_of_files(const std::vector<std::filesystem::path>& files) {
  trace::TraceSet set = trace::load_traces(trace::find_traces(files), {.threads = 1});
  return gather_facts(analysis::analyse(set, 1));
}

// Of the one file of one rank.
inline Facts facts_of_text(const std::string& text) {
  const core::ScratchFolder scratch;
  return facts_of_files({test::write_text(scratch / "rank-0.json", text)});
}

inline Facts facts_of(const StepShape& shape) {
  const core::ScratchFolder scratch;
  std::vector<std::filesystem::path> files;
  TraceMaker maker(shape);
  for (int rank = 0; rank < shape.ranks; ++rank)
    files.push_back(test::write_text(scratch / ("rank-" + std::to_string(rank) + ".json"),
                                     maker.of_rank(rank)));
  return facts_of_files(files);
}

}  // namespace sidestream::advice

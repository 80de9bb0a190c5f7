// What the advice says about a run, with the settings and the machine that its directory names.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiling/advice/advice.hpp"
#include "profiling/analysis/analysis.hpp"

namespace sidestream::launch {

struct RunAdvice {
  advice::Facts facts;  // the roofs too
  advice::Advice advice;
  // What the run directory could not say, file by file; none: it does, or there is none.
  std::vector<std::string> faults = {};
};

// Takes settings and machine from the run directory that the inputs lie in, where they do.
RunAdvice advise_run(const std::vector<std::filesystem::path>& inputs,
                     const analysis::Analysis& analysis, int threads);

// {"flops_per_s": {dtype: ..}, "memory_bytes_per_s", ..., "source", "of_datasheet": [..]}, or null.
nlohmann::ordered_json ceilings_json(const std::optional<advice::Ceilings>& ceilings);

}  // namespace sidestream::launch

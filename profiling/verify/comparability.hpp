// Whether two runs may be compared at all, and what differs between them: first this, then figures.
#pragma once

#include <string>
#include <vector>

#include "profiling/verify/recorded_run.hpp"

namespace sidestream::verify {

enum class DifferenceKind {
  kRefused,      // another model, other data, batch, steps or ranks: a ratio would mean nothing
  kEnvironment,  // of run.json: another machine or build is refused too, the rest is said
  kSubject,      // what is compared
};

struct Difference {
  std::string field;  // name of the flag, or of the key in run.json
  std::string base;   // "not set" where it is not there
  std::string fresh;
  DifferenceKind kind = DifferenceKind::kSubject;
};

// In the order of the alphabet. Values of a machine are looked at where both sides have them.
std::vector<Difference> differences_of(const RecordedRun& base, const RecordedRun& fresh);
std::vector<Difference> differences_of(const std::map<std::string, std::string>& base_config,
                                       const std::map<std::string, std::string>& fresh_config);

// Each field once: of the pair of runs where it is first found.
void add_new_ones(const std::vector<Difference>& found, std::vector<Difference>& all);

// "batch-size-per-rank is 4 and 8, data is a and b"; empty when nothing is refused. Another
// processor, GPU, driver, number of cores or nodes, version or build is refused as well: any of
// them explains a change.
std::string refusal_text(const std::vector<Difference>& differences);

// Throws core::ConfigError when a run is there twice, copied ones too: it is no second block, and
// would have no scatter.
void refuse_repeated(const std::vector<RecordedRun>& runs);

// True when nothing that changes what is learned differs, but by rounding.
bool same_training(const std::vector<Difference>& differences);

// The field of a difference of traces that have few operations in common.
inline constexpr const char* kOperations = "operations";

}  // namespace sidestream::verify

// Other programs on the processors of a run: what its ranks were ready for and did not get, while
// somebody else had it. Communication is slower then, and so is the rank that shares its
// processors, without either being the cause.
#pragma once

#include <optional>

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

inline constexpr double kForeignShare = 0.05;  // of what a rank wanted: below it nothing is said

struct ForeignLoad {
  double processors = 0;  // that other programs ran on, of a node
  double missed = 0;      // processors that a rank was ready for and did not get
  double share = 0;       // of the processors that it wanted
};

// Nothing without samples of the system, or without a run.json that says how many processors there
// are. Of host processes of the ranks' own kind it says nothing: they have a rule of their own.
std::optional<ForeignLoad> foreign_load(const Facts& facts);

// Whether it takes enough to be named before everything else.
bool takes_processors(const ForeignLoad& load, const Facts& facts);

}  // namespace sidestream::advice

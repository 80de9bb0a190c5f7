// The two parts of a data set: what a model learns from, and what it is judged by.
#pragma once

#include <cstdint>
#include <string_view>

namespace sidestream::data {

enum class Split : std::uint8_t { kTrain, kValidation };

// "train" or "val": the word that names of shards hold. Throws Error for a value outside the
// enumeration.
std::string_view name_of(Split split);

}  // namespace sidestream::data

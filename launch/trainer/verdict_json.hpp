// A verdict as run.json holds it.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/record/verdict.hpp"

namespace sidestream::launch {

nlohmann::json verdict_json(const record::RunVerdict& verdict);

}  // namespace sidestream::launch

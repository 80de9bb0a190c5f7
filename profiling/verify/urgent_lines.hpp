// What is to be looked at before any mean of a side: a hang, steps far longer than the others, a
// rank that is late.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sidestream::verify {

// Of a report.json, the most urgent first. Throws nlohmann::json::exception for one of another
// form; what it does not have at all is not urgent.
std::vector<std::string> urgent_lines(const nlohmann::ordered_json& report);

}  // namespace sidestream::verify

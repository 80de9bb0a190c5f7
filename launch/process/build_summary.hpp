// What this program was built with: the same lines that the configure step prints.
#pragma once

#include <string_view>

namespace sidestream::launch {

std::string_view version_text();        // "0.1.0"
std::string_view built_cuda_version();  // of the toolkit: "13.0.48"; empty: built without
std::string_view build_summary_text();  // several lines

}  // namespace sidestream::launch

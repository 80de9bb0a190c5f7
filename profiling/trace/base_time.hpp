// The time that the times of a file count from.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// `text`: whole nanoseconds since 1970 as the file has them, in quotes or not; below 0 is before
// that. Empty or null: the file does not say. What cannot be counts as 0 and is kept for the
// warning.
void read_base_time(std::string_view text, RankInfo& info);

// "the time that others count from: expected ..."; nothing where it can be, or is not there.
std::optional<std::string> base_time_warning(const RankInfo& info);

}  // namespace sidestream::trace

// A base and a new run that both have traces, side by side.
#pragma once

#include "launch/trace/examined_run.hpp"
#include "profiling/page/document.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

// What a run is called on a page: the last part of its path.
std::string folder_name(const std::filesystem::path& input);

// What the profiled runs of both sides say, and what the change is made of.
verify::Profiles profiles_of(const ExaminedRun& base, const ExaminedRun& fresh);

// Both on a page, as far as they are there, and the ceilings of the base.
void add_sides(page::DocumentParts& parts, ExaminedRun* base, ExaminedRun* fresh);

}  // namespace sidestream::launch

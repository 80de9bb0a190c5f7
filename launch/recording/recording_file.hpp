// A recording as a file of its own: what `sidestream-trace`, Perfetto and PyTorch's tools read.
#pragma once

#include <filesystem>

#include "launch/recording/trace_origin.hpp"
#include "profiling/record/recorder.hpp"
#include "profiling/record/system_sample.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::launch {

// Complete or not there. Throws core::Error.
void write_recording(const record::Recording& recording, const record::NameTable& names,
                     const record::SystemSamples& samples, const TraceOrigin& origin,
                     const trace::RunFigures& figures, const std::filesystem::path& file);

}  // namespace sidestream::launch

// The file of a profiled window: Kineto's own events, and in the same file our ranges, the lane of
// the communication, counters, and the metadata that PyTorch's tools look for. Two passes over
// Kineto's file, an event in memory at a time.
#pragma once

#include <filesystem>
#include <string>

#include "launch/recording/recorded_events.hpp"
#include "launch/recording/trace_origin.hpp"
#include "profiling/torch/kineto_session.hpp"

namespace sidestream::launch {

struct WindowParts {
  std::filesystem::path raw_file;  // of Kineto; stays
  const kineto::KinetoNotes& notes;
  const record::Recording& recording;
  const record::NameTable& names;
  const record::SystemSamples& samples;
  std::string modules = "off";  // see OperatorModules
  trace::RunFigures figures = {};
};

struct WrittenWindow {
  bool any_layer = false;        // that WindowParts::modules matched
  std::string other_layer = {};  // the name of one that it did not
};

// Complete or not there. Throws core::Error, and core::DataError when Kineto's file is no trace.
WrittenWindow write_window(const WindowParts& parts, const TraceOrigin& origin,
                           const std::filesystem::path& file);

}  // namespace sidestream::launch

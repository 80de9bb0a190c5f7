// The events of a Kineto file one by one, and the other top-level keys as they come.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sidestream::trace {

struct KinetoVisitor {
  // The object's text; 64 bytes behind it are readable. Valid during the call.
  std::function<void(std::string_view text)> event;
  // A key beside traceEvents with its value as raw JSON
  // text. Large values (above 16 MB) are left out.
  std::function<void(std::string_view key, std::string_view text)> metadata;
  // Something inside traceEvents that is no usable object: why.
  std::function<void(const std::string& reason)> skipped;
};

// Order of keys and white space do not matter; a bare
// array of events is a trace too. Throws core::DataError, also for an object without traceEvents.
void visit_kineto(const std::filesystem::path& path, const KinetoVisitor& visitor);

}  // namespace sidestream::trace

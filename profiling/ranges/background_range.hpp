// What a thread does beside the steps: it holds up no phase, and takes processors and memory from
// those that compute.
#pragma once

#include "profiling/ranges/detail/nvtx_domain.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::ranges {

// Files of a checkpoint, written and checked while training goes on.
inline constexpr const char* kCheckpointWriting = "checkpoint writing";

// From here to the end of the scope, on the calling thread.
class BackgroundRange {
 public:
  // Registers the name each time: for what is done once in many steps.
  explicit BackgroundRange(const char* name) {
    detail::push({detail::register_name(name), kArgb, Category::kStorage}, nullptr);
  }
  ~BackgroundRange() { detail::pop(); }
  BackgroundRange(const BackgroundRange&) = delete;
  BackgroundRange& operator=(const BackgroundRange&) = delete;

 private:
  static constexpr std::uint32_t kArgb = 0xFFFFED6F;
};

}  // namespace sidestream::ranges

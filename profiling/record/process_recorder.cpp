#include "profiling/record/process_recorder.hpp"

#include "profiling/ranges/ranges.hpp"

namespace sidestream::record {
namespace {

std::atomic<bool> attached{false};

}  // namespace

Recorder& process_recorder() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

bool process_recorder_is_attached() {
  { const ranges::ScopedRange first(ranges::Phase::kZeroGrad); }
  return attached.load();
}

void detail::note_attached() noexcept { attached.store(true); }

}  // namespace sidestream::record

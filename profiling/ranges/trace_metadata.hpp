// The object "sidestream" among the top-level keys of a trace: what a run knows about itself and a
// reader of its timeline cannot see. Every key may be missing. Writers and readers take the names
// from here.
#pragma once

#include <string_view>

namespace sidestream::ranges {

inline constexpr std::string_view kMetadataObject = "sidestream";

// Of the model: forward and backward, 6 N + 6 L C T, and 6 N + 12 L C T (PaLM, appendix B).
inline constexpr std::string_view kFlopsPerToken = "flops_per_token";
inline constexpr std::string_view kFlopsPerTokenPalm = "flops_per_token_palm";
// Of all ranks together.
inline constexpr std::string_view kTokensPerStep = "tokens_per_step";
inline constexpr std::string_view kPeakFlopsPerSecond = "peak_flops_per_s";
// Whether the profiler ran in the steps of this file: it does not in those of the light recorder.
inline constexpr std::string_view kProfiled = "profiled";
// Median of the steps beside the windows so far, by the trainer's own clock: what the profiler
// costs is the difference. Their median distance from it, and how many they are: how sure that is.
inline constexpr std::string_view kUnprofiledStepMilliseconds = "unprofiled_step_ms";
inline constexpr std::string_view kUnprofiledStepDeviation = "unprofiled_step_deviation_ms";
inline constexpr std::string_view kUnprofiledSteps = "unprofiled_steps";
// Median of their waits for data: what the loader hides behind a step that the profiler makes
// longer.
inline constexpr std::string_view kUnprofiledDataWait = "unprofiled_data_wait_ms";

// Of the recorder: ranges that found no room, the room for ranges of a thread in which none would
// have been lost (--record-ranges; no such key: not known), the time since 1970 from which on none
// is missing (no such key: not known), and both clocks at either end.
inline constexpr std::string_view kDroppedRanges = "dropped_ranges";
inline constexpr std::string_view kRoomNeeded = "record_ranges_needed";
inline constexpr std::string_view kCompleteFrom = "complete_from_ns";
inline constexpr std::string_view kClockBegin = "clock_begin";
inline constexpr std::string_view kClockEnd = "clock_end";
inline constexpr std::string_view kMonotonicNanoseconds = "monotonic_ns";
inline constexpr std::string_view kRealtimeNanoseconds = "realtime_ns";

// Samples of the system that found no room: they were older than those of the file.
inline constexpr std::string_view kDroppedSamples = "dropped_samples";

// In a file of all ranks together, as `sidestream-trace merge` writes it: how many they are.
inline constexpr std::string_view kMergedRanks = "merged_ranks";

// Among the arguments of a range, with the value true: it had not ended when the recording did.
inline constexpr std::string_view kOpen = "open";

}  // namespace sidestream::ranges

// The object "sidestream" among the top-level keys of a trace: what a run knows about itself and a
// reader of its timeline cannot see. Every key may be missing.
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
// Median of steps outside of any window: what the profiler costs is the difference.
inline constexpr std::string_view kUnprofiledStepMilliseconds = "unprofiled_step_ms";

}  // namespace sidestream::ranges

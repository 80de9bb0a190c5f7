// Every name that a timeline of Sidestream relies on: the NVTX domain, the phases of a step with
// their colours and categories, and what a collective's range carries. Readers of traces match
// these names; change none lightly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sidestream::ranges {

inline constexpr std::string_view kDomain = "sidestream";

// What follows is "#N", N the step: ProfilerStep#12. PyTorch's own tools look for the same words.
inline constexpr std::string_view kStepPrefix = "ProfilerStep#";

enum class Phase : std::uint8_t {
  kData,
  kHostToDevice,
  kForward,
  kBackward,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kWeightWait,  // of the training thread, for gathered weights: no collective of its own
  kOptimizer,
  kZeroGrad,
  kCheckpoint,
  kEval,
  kLog,     // metrics of the run: between steps, on the rank that writes them
  kReplay,  // of a captured step: forward, backward and all that follows, with no ranges inside
};
inline constexpr std::size_t kPhaseCount = 16;

enum class Category : std::uint32_t {
  kStep = 1,
  kInput = 2,
  kCompute = 3,
  kCommunication = 4,
  kStorage = 5,
  kLayer = 6
};

struct CategoryName {
  Category category;
  const char* name;
};
inline constexpr std::array<CategoryName, 6> kCategories = {
    {{Category::kStep, "step"},
     {Category::kInput, "input"},
     {Category::kCompute, "compute"},
     {Category::kCommunication, "communication"},
     {Category::kStorage, "storage"},
     {Category::kLayer, "layer"}}};

struct PhaseInfo {
  const char* name;
  std::uint32_t argb;
  Category category;
};

// In the order of Phase.
inline constexpr std::array<PhaseInfo, kPhaseCount> kPhases = {{
    {"data", 0xFF8DA0CB, Category::kInput},
    {"h2d", 0xFF66C2A5, Category::kInput},
    {"forward", 0xFF4DAF4A, Category::kCompute},
    {"backward", 0xFF377EB8, Category::kCompute},
    {"allreduce", 0xFFE41A1C, Category::kCommunication},
    {"reduce_scatter", 0xFFD95F02, Category::kCommunication},
    {"all_gather", 0xFFE7298A, Category::kCommunication},
    {"broadcast", 0xFFFB8072, Category::kCommunication},
    {"barrier", 0xFFB15928, Category::kCommunication},
    {"weight_wait", 0xFFFCCDE5, Category::kCommunication},
    {"optimizer", 0xFF984EA3, Category::kCompute},
    {"zero_grad", 0xFFA65628, Category::kCompute},
    {"checkpoint", 0xFFFFD92F, Category::kStorage},
    {"eval", 0xFF999999, Category::kCompute},
    {"log", 0xFFE5C494, Category::kStorage},
    {"replay", 0xFF1B9E77, Category::kCompute},
}};

inline constexpr std::uint32_t kStepArgb = 0xFFCCCCCC;
inline constexpr std::uint32_t kLayerArgb = 0xFF80B1D3;

constexpr const PhaseInfo& info_of(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }
constexpr std::string_view name_of(Phase phase) { return info_of(phase).name; }

// Of those of category communication all but the wait for one that is in flight already.
constexpr bool is_collective(Phase phase) {
  return info_of(phase).category == Category::kCommunication && phase != Phase::kWeightWait;
}

inline std::string step_name(std::int64_t step) {
  return std::string(kStepPrefix) + std::to_string(step);
}

// What the range of a collective carries: an NVTX extended payload of three signed 64-bit integers
// with this schema.
struct CollectivePayload {
  std::int64_t bucket = -1;   // -1: not a gradient bucket
  std::int64_t sequence = 0;  // counts the operations of a communicator, the same on every rank
  std::int64_t bytes = 0;     // of this rank's input buffer
};
inline constexpr std::uint64_t kCollectiveSchemaId = (1u << 24) + 0x51DE;
inline constexpr const char* kCollectiveSchemaName = "sidestream.collective";

}  // namespace sidestream::ranges

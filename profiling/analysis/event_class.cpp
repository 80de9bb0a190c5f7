#include "profiling/analysis/event_class.hpp"

#include <algorithm>
#include <array>

#include "profiling/ranges/phase_named.hpp"
#include "profiling/trace/kind.hpp"

namespace sidestream::analysis {
namespace {

using ranges::Category;

constexpr std::array<std::string_view, 13> kSyncCalls = {"cudaDeviceSynchronize",
                                                         "cudaStreamSynchronize",
                                                         "cudaEventSynchronize",
                                                         "cuCtxSynchronize",
                                                         "cuStreamSynchronize",
                                                         "cuEventSynchronize",
                                                         "hipDeviceSynchronize",
                                                         "hipStreamSynchronize",
                                                         "hipEventSynchronize",
                                                         "cudaMemcpy",
                                                         "hipMemcpy",
                                                         "aten::item",
                                                         "aten::_local_scalar_dense"};

constexpr std::array<std::string_view, 13> kLaunchCalls = {"cudaLaunchKernel",
                                                           "cudaLaunchKernelExC",
                                                           "cudaLaunchCooperativeKernel",
                                                           "cuLaunchKernel",
                                                           "cuLaunchKernelEx",
                                                           "cuLaunchCooperativeKernel",
                                                           "cudaGraphLaunch",
                                                           "hipLaunchKernel",
                                                           "hipLaunchCooperativeKernel",
                                                           "hipExtModuleLaunchKernel",
                                                           "hipModuleLaunchKernel",
                                                           "hipModuleLaunchCooperativeKernel",
                                                           "hipGraphLaunch"};

template <std::size_t Count>
bool is_one_of(std::string_view name, const std::array<std::string_view, Count>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

NameClass class_of_phase(std::string_view name) {
  const ranges::PhaseInfo* const phase = ranges::phase_named(name);
  if (phase == nullptr) return NameClass::kPlain;
  if (phase->category == Category::kCommunication)
    return ranges::is_collective_name(name) ? NameClass::kCollectiveRange : NameClass::kWaitRange;
  if (phase->category == Category::kCompute) return NameClass::kComputeRange;
  return phase->category == Category::kInput ? NameClass::kInputRange : NameClass::kPlain;
}

}  // namespace

NameClass class_of(std::string_view name) {
  if (trace::is_collective_kernel(name)) return NameClass::kCollectiveKernel;
  if (name.starts_with(ranges::kStepPrefix)) return NameClass::kStepRange;
  if (is_one_of(name, kSyncCalls)) return NameClass::kSyncCall;
  if (is_one_of(name, kLaunchCalls)) return NameClass::kLaunchCall;
  // PyTorch names the range around next(loader) after the class:
  // enumerate(DataLoader)#_MultiProcessing...
  if (name.starts_with("enumerate(DataLoader)")) return NameClass::kInputRange;
  // torch.distributed's backend for processors, on threads of its own: gloo:all_reduce.
  if (name.starts_with("gloo:")) return NameClass::kCollectiveRange;
  return class_of_phase(name);
}

NameClasses::NameClasses(const trace::NameTable& names)
    : classes_(names.size(), NameClass::kPlain) {
  for (trace::NameId id = 1; id < names.size(); ++id) classes_[id] = class_of(names[id]);
}

}  // namespace sidestream::analysis

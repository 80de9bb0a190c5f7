// What an event is to the analyses, from its kind and its name.
#pragma once

#include <string_view>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

// By name, looked at once for every name of a timeline instead of for every event.
enum class NameClass : unsigned char {
  kPlain,
  kCollectiveKernel,  // NCCL's and RCCL's kernels
  kCollectiveRange,   // allreduce, reduce_scatter, ...: Sidestream's own
  kWaitRange,         // weight_wait: of a thread, for a collective that has a range of its own
  kComputeRange,      // forward, backward, optimizer, zero_grad, eval
  kInputRange,        // data, h2d, and PyTorch's DataLoader ranges
  kStepRange,         // ProfilerStep#N
  kSyncCall,          // cudaDeviceSynchronize and its like, .item()
  kLaunchCall,        // cudaLaunchKernel and its like
};

class NameClasses {
 public:
  explicit NameClasses(const trace::NameTable& names);

  NameClass operator[](trace::NameId id) const { return classes_[id]; }

 private:
  std::vector<NameClass> classes_;
};

NameClass class_of(std::string_view name);

// A range in which its thread communicates, or waits for others to.
constexpr bool is_communication_range(NameClass what) {
  return what == NameClass::kCollectiveRange || what == NameClass::kWaitRange;
}

}  // namespace sidestream::analysis

// For who asks what a model's parameters look like: modules made by this thread meanwhile have
// names and sizes and no memory.
#pragma once

#include <torch/types.h>

namespace sidestream::model {

class ShapesOnly {
 public:
  ShapesOnly() noexcept : before_(active_) { active_ = true; }
  ~ShapesOnly() { active_ = before_; }
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

  // Where a new parameter lies.
  static torch::Device device() noexcept { return active_ ? torch::kMeta : torch::kCPU; }

 private:
  static inline thread_local bool active_ = false;
  bool before_;
};

}  // namespace sidestream::model

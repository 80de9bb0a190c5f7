#include "model/device/geometry.hpp"

#include "core/base/error.hpp"

namespace sidestream::model::device {
namespace {

std::int64_t bytes_of(core::DType dtype) { return static_cast<std::int64_t>(core::size_of(dtype)); }

void check_norm_width(std::int64_t width, const char* kernel) {
  require(width > 0 && width <= kWidestNorm, kernel,
          "expected a width of 1 to " + std::to_string(kWidestNorm) + ", found " +
              std::to_string(width) + "; LibTorch's layer norm (--fused-ops off) takes any");
}

}  // namespace

bool begins_a_chunk(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

std::int64_t loss_threads(std::int64_t stride, core::DType dtype) {
  return std::min(whole_warps(divided_up(stride, 16 / bytes_of(dtype))), kMostLossThreads);
}

Access access_of(std::int64_t width, core::DType dtype, std::initializer_list<const void*> rows) {
  return width * bytes_of(dtype) % 16 == 0 ? access_of(rows) : Access::kElement;
}

Access access_of(std::initializer_list<const void*> ranges) {
  return std::all_of(ranges.begin(), ranges.end(), begins_a_chunk) ? Access::kVector
                                                                   : Access::kElement;
}

void require(bool holds, const char* kernel, const std::string& wanted) {
  if (!holds) throw core::Error(std::string("kernel ") + kernel + ": " + wanted);
}

void check(const NormForwardJob& job) {
  check_norm_width(job.width, "norm");
  require((job.branch == nullptr) == (job.sum == nullptr), "norm",
          "expected a branch and a place for the sum, or neither; found one of them");
}

void check(const NormBackwardJob& job) { check_norm_width(job.width, "norm_backward"); }

void check(const CrossEntropyJob& job) {
  require(job.stride % kLogitStride == 0 && begins_a_chunk(job.logits), "cross_entropy",
          "expected logits at a multiple of 16 bytes and a stride that is one of " +
              std::to_string(kLogitStride) + " elements, found a stride of " +
              std::to_string(job.stride));
  require(job.vocab_size > 0 && job.vocab_size <= job.stride, "cross_entropy",
          "expected a vocabulary of 1 to " + std::to_string(job.stride) + ", found " +
              std::to_string(job.vocab_size));
}

}  // namespace sidestream::model::device

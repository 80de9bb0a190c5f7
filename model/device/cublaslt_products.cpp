// Products by cublasLt, and which of its algorithms each gets.
#include <limits>
#include <map>
#include <mutex>

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "core/base/error.hpp"
#include "model/device/cublaslt_call.hpp"
#include "model/device/fastest.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

// As much as cuBLAS itself takes on an H100 (its documentation, cublasSetWorkspace).
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;
// What the heuristic names later it holds for slower: it is seldom so far off.
constexpr int kMostCandidates = 16;

// A stream, and memory for what is launched there.
struct Launcher {
  c10::cuda::CUDAStream stream;
  LtWorkspace workspace;
};

// Of a launch behind another one, so that the device does not wait for the host meanwhile. Infinite
// where cublasLt has named an algorithm that it then refuses.
float milliseconds(const LtCall& call, const cublasLtMatmulAlgo_t& algorithm,
                   const Launcher& launcher, void* out) {
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  end.record(launcher.stream);  // made now, and not between the launches
  try {
    call.launch(algorithm, launcher.workspace, launcher.stream, out);
    begin.record(launcher.stream);
    call.launch(algorithm, launcher.workspace, launcher.stream, out);
  } catch (const core::Error&) {
    static_cast<void>(cudaGetLastError());  // it is not of who asks next
    return std::numeric_limits<float>::infinity();
  }
  end.record(launcher.stream);
  end.synchronize();
  return begin.elapsed_time(end);
}

// What was chosen for each product, once. Several threads ask: forward's, and autograd's.
class ChosenAlgorithms {
 public:
  cublasLtMatmulAlgo_t of(const LtProduct& product, const LtCall& call, const Launcher& launcher,
                          const Tensor& out) {
    const std::scoped_lock lock(mutex_);
    const LtKey key = key_of(product, out.get_device());
    if (const auto known = chosen_.find(key); known != chosen_.end()) return known->second;
    return chosen_[key] = choose(product, call, launcher, out);
  }

 private:
  // Nothing can be timed while a graph is captured; the steps before it have seen its products.
  cublasLtMatmulAlgo_t choose(const LtProduct& product, const LtCall& call,
                              const Launcher& launcher, const Tensor& out) const {
    const bool times =
        c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None;
    const std::vector<cublasLtMatmulAlgo_t> candidates =
        call.algorithms(times ? kMostCandidates : 1, launcher.workspace.bytes);
    if (!times) return candidates.front();
    // The product's own memory is written again and again, but where it would be added to.
    const Tensor other =
        product.added ? at::zeros({out.size(0) * out.stride(0)}, out.options()) : out;
    return candidates[fastest(candidates.size(), [&](std::size_t i) {
      return milliseconds(call, candidates[i], launcher, other.data_ptr());
    })];
  }

  std::mutex mutex_;
  std::map<LtKey, cublasLtMatmulAlgo_t> chosen_;
};

class CublasLtProducts : public LtProducts {
  void run(const LtProduct& product, const Tensor& out) const override {
    const c10::cuda::CUDAGuard guard(out.device());
    // Of LibTorch's allocator: given back at once, to what comes later on this stream.
    const Tensor workspace = at::empty({kWorkspaceBytes}, out.options().dtype(at::kByte));
    const Launcher launcher{
        .stream = c10::cuda::getCurrentCUDAStream(),
        .workspace = {.memory = workspace.data_ptr(), .bytes = kWorkspaceBytes}};
    const LtCall call(product, at::cuda::getCurrentCUDABlasLtHandle());
    call.launch(chosen_->of(product, call, launcher, out), launcher.workspace, launcher.stream,
                product.out.memory);
  }

  std::unique_ptr<ChosenAlgorithms> chosen_ = std::make_unique<ChosenAlgorithms>();
};

}  // namespace

std::shared_ptr<const Products> make_products() { return std::make_shared<CublasLtProducts>(); }

}  // namespace sidestream::model::device

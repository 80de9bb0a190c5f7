// CUDA graphs by LibTorch, whose allocator keeps the memory of a graph apart, and whose generators
// are read on the device in a replay.
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "launch/device/graph_engine.hpp"

namespace sidestream::launch {
namespace {

// Note [Draws in a graph]
// A generator that is registered with a graph has its seed and offset on the device, written before
// each replay; one generator has one seed a replay. A step has a seed for every micro-step, so each
// micro-step has a generator of its own, whose state the default generator takes over in its turn:
// operators ask no other.
class CudaGraphEngine final : public GraphEngine {
 public:
  CudaGraphEngine(const torch::Device& device, int micro_steps)
      : device_(device.index()),
        default_(at::cuda::detail::getDefaultCUDAGenerator(device.index())),
        default_state_(default_.graphsafe_get_state()) {
    for (int i = 0; i < micro_steps; ++i)
      generators_.push_back(at::cuda::detail::createCUDAGenerator(device.index()));
  }

  ~CudaGraphEngine() override {
    drop();
    try {
      take_over(default_state_);
    } catch (const std::exception&) {  // the device has failed: what matters has been reported
    }
  }

  void capture(const std::function<void()>& work) override {
    drop();
    // Memory that steps without a graph have used is free now, and the graph wants its own.
    c10::cuda::CUDACachingAllocator::emptyCache();
    take_over(default_state_);
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    for (const at::Generator& generator : generators_) graph_->register_generator_state(generator);
    try {
      // Other threads go on asking about their own events and memory.
      graph_->capture_begin(/*pool=*/{0, 0}, cudaStreamCaptureModeThreadLocal);
      work();
      graph_->capture_end();
    } catch (...) {
      abandon();
      throw;
    }
  }

  void replay() override { graph_->replay(); }

  void drop() noexcept override {
    try {
      c10::cuda::getCurrentCUDAStream(device_).synchronize();
      graph_.reset();
    } catch (const std::exception&) {  // the device has failed: what matters has been reported
      graph_.reset();
    }
  }

  void set_seed(int micro_step, std::uint64_t seed) override {
    at::Generator& generator = generators_.at(static_cast<std::size_t>(micro_step));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  }

  void draw_for(int micro_step) override {
    take_over(generators_.at(static_cast<std::size_t>(micro_step)));
  }

 private:
  // A capture that is no longer valid ends all the same, and says so again.
  void abandon() noexcept {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {  // the first failure is on its way
    }
    cudaGetLastError();  // must not turn up in a later call
    drop();
  }

  void take_over(const at::Generator& generator) {
    const std::lock_guard<std::mutex> lock(default_.mutex());
    default_.graphsafe_set_state(generator);
  }

  c10::DeviceIndex device_;
  at::Generator default_;
  at::Generator default_state_;
  std::vector<at::Generator> generators_;  // of the micro-steps
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

std::unique_ptr<GraphEngine> make_graph_engine(const torch::Device& device, int micro_steps) {
  return std::make_unique<CudaGraphEngine>(device, micro_steps);
}

bool has_graph_engine() noexcept { return true; }

}  // namespace sidestream::launch

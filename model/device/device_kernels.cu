// The kernels for CUDA: what a thread of theirs can do, and launches. What they compute is in
// kernel_bodies.hpp, how a block's threads work together in thread_block.hpp.
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/error.hpp"
#include "model/device/kernels_on.hpp"
#include "model/device/thread_block.hpp"

namespace sidestream::model::device {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Memory of a block, as much as the launch asked for.
extern __shared__ uint4 fetched_chunks[];

// The calling thread and its block.
struct CudaThreads {
  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }

  __device__ __forceinline__ float of_lane_after(float value, int distance) const {
    return __shfl_down_sync(kAllLanes, value, distance);
  }
  __device__ __forceinline__ float of_first_lane(float value) const {
    return __shfl_sync(kAllLanes, value, 0);
  }
  __device__ __forceinline__ void wait_for_all() const { __syncthreads(); }

  __device__ __forceinline__ void fetch(std::int64_t place, const void* from) const {
    __pipeline_memcpy_async(fetched_chunks + place, from, kChunkBytes);
  }
  __device__ __forceinline__ void wait_for_fetched() const {
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  template <typename T>
  __device__ __forceinline__ Chunk<T> fetched(std::int64_t place) const {
    return __builtin_bit_cast(Chunk<T>, fetched_chunks[place]);
  }
};

constexpr std::int64_t kMostScratch = 3072;  // bytes
constexpr std::int64_t kMemoryOfAnyBlock = 48 * 1024 - kMostScratch;

// Of which registers are to leave so many on a multiprocessor; one where nothing is said.
template <typename Body>
constexpr int told_blocks() {
  if constexpr (requires { Body::kBlocksAtOnce; }) return Body::kBlocksAtOnce;
  return 1;
}

template <typename Body>
__global__ void __launch_bounds__(Body::kMostThreads, told_blocks<Body>())
    run_body(const Body body) {
  using Block = ThreadBlock<CudaThreads, Body::kMostThreads>;
  __shared__ typename Block::Scratch scratch;
  static_assert(sizeof(scratch) <= kMostScratch);
  Block block(CudaThreads(), scratch);
  body(block, BlockPlace{blockIdx.x, blockIdx.y, gridDim.x, gridDim.y});
}

void check_cuda(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) throw core::Error(what + ": " + cudaGetErrorString(error));
}

int attribute_of_device(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "no current device");
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "an attribute of the device");
  return value;
}

struct CudaGrid {
  // Of the current device; so is what comes next.
  std::int64_t most_memory_bytes() const {
    const std::int64_t bytes = attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return std::max<std::int64_t>(0, bytes - kMostScratch);
  }

  template <typename Body>
  void run(const GridSize& size, const Body& body, DeviceStream stream) const {
    if (size.memory_bytes > kMemoryOfAnyBlock) allow_memory<Body>();
    launch(size, body, stream);
  }

  template <typename Body>
  void run_at_once(GridSize size, const Body& body, DeviceStream stream) const {
    allow_memory<Body>();
    size.blocks_x = std::min(size.blocks_x, blocks_at_once<Body>(size));
    launch(size, body, stream);
  }

 private:
  template <typename Body>
  void launch(const GridSize& size, const Body& body, DeviceStream stream) const {
    require(size.blocks_x <= std::numeric_limits<int>::max(), Body::kName,
            std::to_string(size.blocks_x) + " blocks are more than a launch can have");
    const dim3 blocks(static_cast<unsigned>(size.blocks_x), static_cast<unsigned>(size.blocks_y));
    run_body<<<blocks, static_cast<unsigned>(size.threads),
               static_cast<std::size_t>(size.memory_bytes), static_cast<cudaStream_t>(stream)>>>(
        body);
    check_cuda(cudaGetLastError(), std::string("kernel ") + Body::kName + " was not started");
  }

  // More of it a block only for who asks, and as many blocks at once as it all suffices for.
  // The same for every launch: others may be under way.
  template <typename Body>
  void allow_memory() const {
    check_cuda(cudaFuncSetAttribute(run_body<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(most_memory_bytes())),
               Body::kName);
    check_cuda(cudaFuncSetAttribute(run_body<Body>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared),
               Body::kName);
  }

  template <typename Body>
  std::int64_t blocks_at_once(const GridSize& size) const {
    int on_each = 0;
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &on_each, run_body<Body>, static_cast<int>(size.threads),
                   static_cast<std::size_t>(size.memory_bytes)),
               Body::kName);
    return std::int64_t{std::max(1, on_each)} * attribute_of_device(cudaDevAttrMultiProcessorCount);
  }
};

}  // namespace

std::shared_ptr<DeviceKernels> make_device_kernels() {
  return std::make_shared<KernelsOn<CudaGrid>>();
}

}  // namespace sidestream::model::device

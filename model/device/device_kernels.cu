// The kernels for CUDA: a block's sums by shuffles and shared memory, and launches. What they
// compute is in kernel_bodies.hpp.
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/error.hpp"
#include "model/device/kernels_on.hpp"

namespace sidestream::model::device {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

__device__ float lane_below(float value, int distance) {
  return __shfl_down_sync(kAllLanes, value, distance);
}
__device__ Two lane_below(const Two& value, int distance) {
  return {lane_below(value.first, distance), lane_below(value.second, distance)};
}

__device__ float of_first_lane(float value) { return __shfl_sync(kAllLanes, value, 0); }
__device__ Two of_first_lane(const Two& value) {
  return {of_first_lane(value.first), of_first_lane(value.second)};
}

// Memory of a block, as much as the launch asked for.
extern __shared__ uint4 fetched_chunks[];

// The block of the calling thread, of at most so many.
template <int kMostThreads>
class CudaBlock {
 public:
  // One for each warp, twice: see reduce(). A single warp needs neither it nor a barrier.
  struct Scratch {
    Two warps[2][kMostThreads / kWarp];
    float threads[kColumnSumThreads];
  };

  template <typename State>
  class Local {
   public:
    __device__ explicit Local(const CudaBlock&) {}
    __device__ __forceinline__ State& of(int) { return state_; }

   private:
    State state_;
  };

  __device__ explicit CudaBlock(Scratch& scratch) : scratch_(scratch) {}

  __device__ __forceinline__ void fetch(int, std::int64_t place, const void* from) const {
    __pipeline_memcpy_async(fetched_chunks + place, from, kChunkBytes);
  }
  __device__ __forceinline__ void wait_for_fetched(int) const {
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  template <typename T>
  __device__ __forceinline__ Chunk<T> fetched(int, std::int64_t place) const {
    return __builtin_bit_cast(Chunk<T>, fetched_chunks[place]);
  }

  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }

  template <typename Action>
  __device__ __forceinline__ void each(const Action& action) const {
    action(static_cast<int>(threadIdx.x));
  }

  // Warps write into one half of the scratch and read it after the barrier; the next reduce() takes
  // the other half. Whoever writes into the first half again has met everyone at the barrier of
  // that one, after they had read: one barrier for each reduce() is enough.
  template <typename Make, typename Combine>
  __device__ __forceinline__ auto reduce(const Make& make, const Combine& combine) {
    auto value = make(static_cast<int>(threadIdx.x));
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      value = combine(value, lane_below(value, distance));
    if constexpr (kMostThreads == kWarp) return of_first_lane(value);
    auto* warps = reinterpret_cast<decltype(value)*>(scratch_.warps[turn_]);
    turn_ ^= 1;
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    const int count = threads() / kWarp;
    auto total = warps[0];
    for (int warp = 1; warp < count; ++warp) total = combine(total, warps[warp]);
    return total;
  }

  template <typename Make, typename Take>
  __device__ __forceinline__ void lane_sums(const Make& make, const Take& take) {
    scratch_.threads[threadIdx.x] = make(static_cast<int>(threadIdx.x));
    __syncthreads();
    if (threadIdx.x >= kWarp) return;
    float total = scratch_.threads[threadIdx.x];
    for (int i = static_cast<int>(threadIdx.x) + kWarp; i < threads(); i += kWarp)
      total += scratch_.threads[i];
    take(static_cast<int>(threadIdx.x), total);
  }

 private:
  Scratch& scratch_;
  int turn_ = 0;
};

constexpr std::int64_t kMostScratch = 3072;  // bytes

template <typename Body>
__global__ void __launch_bounds__(Body::kMostThreads) run_body(const Body body) {
  using Block = CudaBlock<Body::kMostThreads>;
  __shared__ typename Block::Scratch scratch;
  static_assert(sizeof(scratch) <= kMostScratch);
  Block block(scratch);
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
    require(size.blocks_x <= std::numeric_limits<int>::max(), Body::kName,
            std::to_string(size.blocks_x) + " blocks are more than a launch can have");
    const dim3 blocks(static_cast<unsigned>(size.blocks_x), static_cast<unsigned>(size.blocks_y));
    run_body<<<blocks, static_cast<unsigned>(size.threads),
               static_cast<std::size_t>(size.memory_bytes), static_cast<cudaStream_t>(stream)>>>(
        body);
    check_cuda(cudaGetLastError(), std::string("kernel ") + Body::kName + " was not started");
  }

  template <typename Body>
  void run_at_once(GridSize size, const Body& body, DeviceStream stream) const {
    allow_memory<Body>();
    size.blocks_x = std::min(size.blocks_x, blocks_at_once<Body>(size));
    run(size, body, stream);
  }

 private:
  // More than 48 KB a block only for who asks, and as many blocks at once as it all suffices for.
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

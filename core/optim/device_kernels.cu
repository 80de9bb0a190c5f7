// CUDA kernels of the optimizer. Compiled without fused multiply-add, as core/optim's loops are, so
// that a GPU and a processor give the same bits.
#include <cuda_runtime.h>

#include <string>

#include "core/base/error.hpp"
#include "core/optim/device_kernels.hpp"

namespace sidestream::optim {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kVector = 4;  // elements that a thread takes at a time

// --- loads and stores of four neighbours; pieces start at 64-byte boundaries in every buffer
// -------------------

struct Four {
  float at[kVector];
};

__device__ Four load_four(const float* data) {
  const float4 v = *reinterpret_cast<const float4*>(data);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ Four load_four(const core::BFloat16* data) {
  const uint2 v = *reinterpret_cast<const uint2*>(data);
  return {{__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xFFFF0000u),
           __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xFFFF0000u)}};
}

__device__ void store_four(float* data, const Four& v) {
  *reinterpret_cast<float4*>(data) = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
}

__device__ void store_four(core::BFloat16* data, const Four& v) {
  core::BFloat16 narrow[kVector];
  for (int i = 0; i < kVector; ++i) narrow[i] = core::BFloat16(v.at[i]);
  const unsigned low = narrow[0].bits | (static_cast<unsigned>(narrow[1].bits) << 16);
  const unsigned high = narrow[2].bits | (static_cast<unsigned>(narrow[3].bits) << 16);
  *reinterpret_cast<uint2*>(data) = make_uint2(low, high);
}

// --- sums of squares

// A warp a piece: lane l adds elements l, l + 32, ... in order, then the lanes are added as a tree.
// The same additions as block_sum() in reduce.cpp makes.
template <typename Gradient>
__global__ void squares_kernel(PieceTable table, const Gradient* gradients, double* squares) {
  const std::size_t index =
      (blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x) / kWarp;
  if (index >= table.count) return;
  const DevicePiece piece = table.pieces[index];
  const Gradient* data = gradients + piece.gradient;
  const unsigned lane = threadIdx.x % kWarp;
  double sum = 0;
#pragma unroll 8
  for (unsigned i = lane; i < piece.count; i += kWarp) {
    const double value = static_cast<float>(data[i]);
    sum += value * value;
  }
  for (unsigned width = kWarp / 2; width > 0; width /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, width);
  if (lane == 0) squares[piece.block] = sum;
}

// Adds `count` numbers in order: the block loads, its first thread adds.
__device__ double add_in_order(const double* numbers, std::size_t count) {
  __shared__ double chunk[kThreads];
  double sum = 0;
  for (std::size_t first = 0; first < count; first += kThreads) {
    if (first + threadIdx.x < count) chunk[threadIdx.x] = numbers[first + threadIdx.x];
    __syncthreads();
    const std::size_t here = count - first < kThreads ? count - first : kThreads;
    if (threadIdx.x == 0) {
      for (std::size_t i = 0; i < here; ++i) sum += chunk[i];
    }
    __syncthreads();
  }
  return sum;
}

__global__ void parameter_squares_kernel(SettleJob job) {
  const std::uint32_t first = job.first_block[blockIdx.x];
  const double sum = add_in_order(job.squares + first, job.first_block[blockIdx.x + 1] - first);
  if (threadIdx.x == 0) job.parameter_squares[blockIdx.x] = sum;
}

__global__ void settle_kernel(SettleJob job) {
  const double sum = add_in_order(job.parameter_squares, job.parameters);
  if (threadIdx.x == 0) *job.scalars = settle(*job.scalars, sum, job.rule);
}

// --- updates: a block a piece, four elements a thread at a time

template <typename Gradient>
struct AdamWUpdate {
  AdamWJob job;

  __device__ Four four(const DevicePiece& piece, unsigned i, float scale,
                       const AdamWCoefficients& c) const {
    const Four gradients =
        load_four(static_cast<const Gradient*>(job.gradients.data) + piece.gradient + i);
    Four weights = load_four(job.weights + piece.weight + i);
    Four first = load_four(job.first_moments + piece.weight + i);
    Four second = load_four(job.second_moments + piece.weight + i);
    for (int k = 0; k < kVector; ++k) {
      const AdamWElement now =
          adamw_element({weights.at[k], first.at[k], second.at[k]}, gradients.at[k] * scale, c);
      weights.at[k] = now.weight;
      first.at[k] = now.first_moment;
      second.at[k] = now.second_moment;
    }
    store_four(job.first_moments + piece.weight + i, first);
    store_four(job.second_moments + piece.weight + i, second);
    return weights;
  }

  __device__ float one(const DevicePiece& piece, unsigned i, float scale,
                       const AdamWCoefficients& c) const {
    const Gradient* gradients = static_cast<const Gradient*>(job.gradients.data) + piece.gradient;
    float* first = job.first_moments + piece.weight + i;
    float* second = job.second_moments + piece.weight + i;
    const AdamWElement now = adamw_element({job.weights[piece.weight + i], *first, *second},
                                           static_cast<float>(gradients[i]) * scale, c);
    *first = now.first_moment;
    *second = now.second_moment;
    return now.weight;
  }
};

template <typename Gradient>
struct SgdUpdate {
  SgdJob job;

  __device__ float momentum_at(std::uint64_t i) const {
    return job.momentum == nullptr ? 0.0f : job.momentum[i];
  }

  __device__ float one(const DevicePiece& piece, unsigned i, float scale,
                       const SgdCoefficients& c) const {
    const Gradient* gradients = static_cast<const Gradient*>(job.gradients.data) + piece.gradient;
    const std::uint64_t place = piece.weight + i;
    const SgdElement now = sgd_element({job.weights[place], momentum_at(place)},
                                       static_cast<float>(gradients[i]) * scale, c);
    if (job.momentum != nullptr) job.momentum[place] = now.momentum;
    return now.weight;
  }

  __device__ Four four(const DevicePiece& piece, unsigned i, float scale,
                       const SgdCoefficients& c) const {
    Four weights;
    for (int k = 0; k < kVector; ++k) weights.at[k] = one(piece, i + k, scale, c);
    return weights;
  }
};

template <typename Update>
__global__ void update_kernel(Update update) {
  if (update.job.scalars->first_bad_step != 0) return;
  const DevicePiece piece = update.job.table.pieces[blockIdx.x];
  const auto& c = piece.decays != 0 ? update.job.with_decay : update.job.without_decay;
  const float scale = static_cast<float>(update.job.scalars->gradient_scale);
  float* weights = update.job.weights + piece.weight;
  core::BFloat16* low = update.job.low_precision;
  const unsigned whole = piece.count / kVector * kVector;
  for (unsigned i = threadIdx.x * kVector; i < whole; i += kThreads * kVector) {
    const Four now = update.four(piece, i, scale, c);
    store_four(weights + i, now);
    if (low != nullptr) store_four(low + piece.low + i, now);
  }
  const unsigned i = whole + threadIdx.x;
  if (i >= piece.count) return;
  const float now = update.one(piece, i, scale, c);
  weights[i] = now;
  if (low != nullptr) low[piece.low + i] = core::BFloat16(now);
}

// --- launches

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw core::Error(std::string("kernel ") + kernel +
                    " was not started: " + cudaGetErrorString(error));
}

[[noreturn]] void refuse(core::DType dtype) {
  throw core::Error("The optimizer's kernels know gradients in float32 and bfloat16 only, found " +
                    std::string(core::name_of(dtype)) + ".");
}

template <typename Update>
void launch_update(const Update& update, cudaStream_t stream, const char* name) {
  if (update.job.table.count == 0) return;
  update_kernel<<<static_cast<unsigned>(update.job.table.count), kThreads, 0, stream>>>(update);
  check_launch(name);
}

template <typename Gradient>
void launch_squares(const SquaresJob& job, cudaStream_t stream) {
  constexpr std::size_t kPiecesABlock = kThreads / kWarp;
  const auto blocks = static_cast<unsigned>((job.table.count + kPiecesABlock - 1) / kPiecesABlock);
  squares_kernel<<<blocks, kThreads, 0, stream>>>(
      job.table, static_cast<const Gradient*>(job.gradients.data), job.squares);
  check_launch("squares");
}

class CudaKernels final : public DeviceKernels {
 public:
  void squares(const SquaresJob& job, DeviceStream stream) override {
    if (job.table.count == 0) return;
    if (job.gradients.dtype == core::DType::kFloat32)
      return launch_squares<float>(job, raw(stream));
    if (job.gradients.dtype == core::DType::kBFloat16)
      return launch_squares<core::BFloat16>(job, raw(stream));
    refuse(job.gradients.dtype);
  }

  void settle(const SettleJob& job, DeviceStream stream) override {
    parameter_squares_kernel<<<static_cast<unsigned>(job.parameters), kThreads, 0, raw(stream)>>>(
        job);
    check_launch("parameter_squares");
    settle_kernel<<<1, kThreads, 0, raw(stream)>>>(job);
    check_launch("settle");
  }

  void adamw(const AdamWJob& job, DeviceStream stream) override {
    update<AdamWUpdate>(job, stream, "adamw");
  }
  void sgd(const SgdJob& job, DeviceStream stream) override {
    update<SgdUpdate>(job, stream, "sgd");
  }

 private:
  static cudaStream_t raw(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

  template <template <typename> typename Update, typename Job>
  static void update(const Job& job, DeviceStream stream, const char* name) {
    if (job.gradients.dtype == core::DType::kFloat32)
      return launch_update(Update<float>{job}, raw(stream), name);
    if (job.gradients.dtype == core::DType::kBFloat16) {
      return launch_update(Update<core::BFloat16>{job}, raw(stream), name);
    }
    refuse(job.gradients.dtype);
  }
};

}  // namespace

std::shared_ptr<DeviceKernels> make_device_kernels() { return std::make_shared<CudaKernels>(); }

}  // namespace sidestream::optim

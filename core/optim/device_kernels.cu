// CUDA kernels of the optimizer. Compiled without fused multiply-add, as core/optim's loops are, so
// that a GPU and a processor give the same bits.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "core/base/error.hpp"
#include "core/optim/device_kernels.hpp"

namespace sidestream::optim {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kVector = 4;  // elements that a thread takes at a time

// --- loads and stores of four neighbours; pieces start at multiples of 16 elements in every buffer

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

// By the instructions that convert fp16.
__device__ float from_half(unsigned short bits) { return __half2float(__ushort_as_half(bits)); }
__device__ unsigned half_bits(float value) { return __half_as_ushort(__float2half_rn(value)); }

__device__ Four load_four(const core::Float16* data) {
  const uint2 v = *reinterpret_cast<const uint2*>(data);
  return {{from_half(v.x & 0xFFFFu), from_half(v.x >> 16), from_half(v.y & 0xFFFFu),
           from_half(v.y >> 16)}};
}

__device__ void store_four(float* data, const float (&v)[kVector]) {
  *reinterpret_cast<float4*>(data) = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ void store_four(core::BFloat16* data, const core::BFloat16 (&v)[kVector]) {
  const unsigned low = v[0].bits | (static_cast<unsigned>(v[1].bits) << 16);
  const unsigned high = v[2].bits | (static_cast<unsigned>(v[3].bits) << 16);
  *reinterpret_cast<uint2*>(data) = make_uint2(low, high);
}

__device__ void store_four(float* data, const Four& v) { store_four(data, v.at); }

__device__ void store_four(core::BFloat16* data, const Four& v) {
  core::BFloat16 narrow[kVector];
  for (int i = 0; i < kVector; ++i) narrow[i] = core::BFloat16(v.at[i]);
  store_four(data, narrow);
}

__device__ void store_four(core::Float16* data, const Four& v) {
  *reinterpret_cast<uint2*>(data) = make_uint2(half_bits(v.at[0]) | (half_bits(v.at[1]) << 16),
                                               half_bits(v.at[2]) | (half_bits(v.at[3]) << 16));
}

// All threads of a launch take the same branch.
__device__ void store_copy(const LowCopy& copy, std::uint64_t at, const Four& v) {
  if (copy.dtype == core::DType::kFloat16)
    return store_four(static_cast<core::Float16*>(copy.data) + at, v);
  store_four(static_cast<core::BFloat16*>(copy.data) + at, v);
}

__device__ void store_copy(const LowCopy& copy, std::uint64_t at, float v) {
  if (copy.dtype == core::DType::kFloat16)
    static_cast<core::Float16*>(copy.data)[at] = core::Float16(v);
  else
    static_cast<core::BFloat16*>(copy.data)[at] = core::BFloat16(v);
}

// --- sums of squares

// Chunks of 16 bytes that each lane has under way, and a warp's place to hand them over.
constexpr int kChunksAhead = 4;
using WarpChunks = uint4[kChunksAhead][kWarp];

__device__ void add_square(double& sum, float value) {
  const double wide = value;
  sum += wide * wide;
}

// A warp a piece: lane l adds elements l, l + 32, ... in order, then the lanes are added as a tree.
// The same additions as block_squares() in block_squares.cpp makes. What a lane loads is not what
// it adds: neighbours load chunks that lie side by side, and exchange them in shared memory.
template <typename Gradient>
__global__ void squares_kernel(PieceTable table, const Gradient* gradients, double* squares) {
  constexpr unsigned kInChunk = sizeof(uint4) / sizeof(Gradient);
  constexpr unsigned kRound = kChunksAhead * kWarp * kInChunk;
  __shared__ WarpChunks of_warps[kThreads / kWarp];
  const std::size_t index =
      (blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x) / kWarp;
  if (index >= table.count) return;
  const DevicePiece piece = table.pieces[index];
  const Gradient* data = gradients + piece.gradient;
  const unsigned lane = threadIdx.x % kWarp;
  WarpChunks& exchanged = of_warps[threadIdx.x / kWarp];
  const auto* ours = reinterpret_cast<const Gradient*>(&exchanged[0][0]);
  double sum = 0;
  unsigned done = 0;
  for (; done + kRound <= piece.count; done += kRound) {
    const auto* chunks = reinterpret_cast<const uint4*>(data + done);
    uint4 loaded[kChunksAhead];
    for (int a = 0; a < kChunksAhead; ++a) loaded[a] = chunks[a * kWarp + lane];
    for (int a = 0; a < kChunksAhead; ++a) exchanged[a][lane] = loaded[a];
    __syncwarp();
#pragma unroll
    for (unsigned i = 0; i < kRound; i += kWarp)
      add_square(sum, static_cast<float>(ours[i + lane]));
    __syncwarp();
  }
  for (unsigned i = done + lane; i < piece.count; i += kWarp)
    add_square(sum, static_cast<float>(data[i]));
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
  if (threadIdx.x == 0) *job.scalars = settle(*job.scalars, sum, job.rule->clip);
}

__global__ void set_rule_kernel(StepRule rule, StepRule* to) { *to = rule; }

// --- updates: a block a piece, four elements a thread at a time

template <typename Gradient, typename Moment>
struct AdamWUpdate {
  AdamWJob job;

  __device__ Moment* first_of(const DevicePiece& piece, unsigned i) const {
    return static_cast<Moment*>(job.first_moments) + piece.weight + i;
  }
  __device__ Moment* second_of(const DevicePiece& piece, unsigned i) const {
    return static_cast<Moment*>(job.second_moments) + piece.weight + i;
  }

  __device__ Four four(const DevicePiece& piece, unsigned i, float scale,
                       const AdamWCoefficients& c, const RoundingPlace& place) const {
    const Four gradients =
        load_four(static_cast<const Gradient*>(job.gradients.data) + piece.gradient + i);
    Four weights = load_four(job.weights + piece.weight + i);
    const Four first = load_four(first_of(piece, i));
    const Four second = load_four(second_of(piece, i));
    Moment first_now[kVector], second_now[kVector];
    for (int k = 0; k < kVector; ++k) {
      const AdamWElement now =
          adamw_element({weights.at[k], first.at[k], second.at[k]}, gradients.at[k] * scale, c);
      const std::uint32_t draw = rounding_draw(place, i + k);
      weights.at[k] = now.weight;
      first_now[k] = kept_moment<Moment>(now.first_moment, draw, RoundingHalf::kFirstMoment);
      second_now[k] = kept_moment<Moment>(now.second_moment, draw, RoundingHalf::kSecondMoment);
    }
    store_four(first_of(piece, i), first_now);
    store_four(second_of(piece, i), second_now);
    return weights;
  }

  __device__ float one(const DevicePiece& piece, unsigned i, float scale,
                       const AdamWCoefficients& c, const RoundingPlace& place) const {
    const Gradient* gradients = static_cast<const Gradient*>(job.gradients.data) + piece.gradient;
    Moment* first = first_of(piece, i);
    Moment* second = second_of(piece, i);
    const AdamWElement now = adamw_element(
        {job.weights[piece.weight + i], static_cast<float>(*first), static_cast<float>(*second)},
        static_cast<float>(gradients[i]) * scale, c);
    const std::uint32_t draw = rounding_draw(place, i);
    *first = kept_moment<Moment>(now.first_moment, draw, RoundingHalf::kFirstMoment);
    *second = kept_moment<Moment>(now.second_moment, draw, RoundingHalf::kSecondMoment);
    return now.weight;
  }
};

template <typename Gradient, typename Moment>
struct SgdUpdate {
  SgdJob job;

  __device__ float one(const DevicePiece& piece, unsigned i, float scale, const SgdCoefficients& c,
                       const RoundingPlace& place) const {
    const Gradient* gradients = static_cast<const Gradient*>(job.gradients.data) + piece.gradient;
    const std::uint64_t at = piece.weight + i;
    Moment* momentum = job.momentum == nullptr ? nullptr : static_cast<Moment*>(job.momentum) + at;
    const float before = momentum == nullptr ? 0.0f : static_cast<float>(*momentum);
    const SgdElement now =
        sgd_element({job.weights[at], before}, static_cast<float>(gradients[i]) * scale, c);
    if (momentum != nullptr) {
      *momentum =
          kept_moment<Moment>(now.momentum, rounding_draw(place, i), RoundingHalf::kFirstMoment);
    }
    return now.weight;
  }

  __device__ Four four(const DevicePiece& piece, unsigned i, float scale, const SgdCoefficients& c,
                       const RoundingPlace& place) const {
    Four weights;
    for (int k = 0; k < kVector; ++k) weights.at[k] = one(piece, i + k, scale, c, place);
    return weights;
  }
};

template <typename Update>
__global__ void update_kernel(Update update) {
  if (!has_update(*update.job.scalars)) return;
  const DevicePiece piece = update.job.table.pieces[blockIdx.x];
  const auto c = of_step(coefficients_of(update.job, piece), *update.job.scalars);
  const float scale = static_cast<float>(update.job.scalars->gradient_scale);
  const RoundingPlace place =
      rounding_place(update.job.rule->rounding, piece.parameter, piece.first);
  float* weights = update.job.weights + piece.weight;
  const LowCopy low = update.job.low_precision;
  const unsigned whole = piece.count / kVector * kVector;
  for (unsigned i = threadIdx.x * kVector; i < whole; i += kThreads * kVector) {
    const Four now = update.four(piece, i, scale, c, place);
    store_four(weights + i, now);
    if (low.data != nullptr) store_copy(low, piece.low + i, now);
  }
  const unsigned i = whole + threadIdx.x;
  if (i >= piece.count) return;
  const float now = update.one(piece, i, scale, c, place);
  weights[i] = now;
  if (low.data != nullptr) store_copy(low, piece.low + i, now);
}

__global__ void round_kernel(RoundingJob job) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; i < job.count;
       i += stride) {
    const std::uint32_t draw = rounding_draw(job.place.from(i), /*i=*/0);
    job.to[i] = round_stochastically(job.from[i], half_of(draw, job.half));
  }
}

// --- launches

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw core::Error(std::string("kernel ") + kernel +
                    " was not started: " + cudaGetErrorString(error));
}

[[noreturn]] void refuse(const char* what, const char* known, core::DType dtype) {
  throw core::Error("The optimizer's kernels know " + std::string(what) + " in " + known +
                    " only, found " + std::string(core::name_of(dtype)) + ".");
}
constexpr const char* kOfGradients = "float32, bfloat16 and float16";
constexpr const char* kOfMoments = "float32 and bfloat16";

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
    if (job.gradients.dtype == core::DType::kFloat16)
      return launch_squares<core::Float16>(job, raw(stream));
    refuse("gradients", kOfGradients, job.gradients.dtype);
  }

  void settle(const SettleJob& job, DeviceStream stream) override {
    parameter_squares_kernel<<<static_cast<unsigned>(job.parameters), kThreads, 0, raw(stream)>>>(
        job);
    check_launch("parameter_squares");
    settle_kernel<<<1, kThreads, 0, raw(stream)>>>(job);
    check_launch("settle");
  }

  void set_rule(const StepRule& rule, StepRule* to, DeviceStream stream) override {
    set_rule_kernel<<<1, 1, 0, raw(stream)>>>(rule, to);
    check_launch("set_rule");
  }

  void adamw(const AdamWJob& job, DeviceStream stream) override {
    update<AdamWUpdate>(job, stream, "adamw");
  }
  void sgd(const SgdJob& job, DeviceStream stream) override {
    update<SgdUpdate>(job, stream, "sgd");
  }

  void round(const RoundingJob& job, DeviceStream stream) override {
    if (job.count == 0) return;
    constexpr std::size_t kMostBlocks = 65536;
    const auto blocks =
        static_cast<unsigned>(std::min(kMostBlocks, (job.count + kThreads - 1) / kThreads));
    round_kernel<<<blocks, kThreads, 0, raw(stream)>>>(job);
    check_launch("round");
  }

 private:
  static cudaStream_t raw(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

  template <template <typename, typename> typename Update, typename Job>
  static void update(const Job& job, DeviceStream stream, const char* name) {
    if (job.gradients.dtype == core::DType::kFloat32)
      return update_from<Update, float>(job, stream, name);
    if (job.gradients.dtype == core::DType::kBFloat16)
      return update_from<Update, core::BFloat16>(job, stream, name);
    if (job.gradients.dtype == core::DType::kFloat16)
      return update_from<Update, core::Float16>(job, stream, name);
    refuse("gradients", kOfGradients, job.gradients.dtype);
  }

  template <template <typename, typename> typename Update, typename Gradient, typename Job>
  static void update_from(const Job& job, DeviceStream stream, const char* name) {
    if (job.moment_dtype == core::DType::kFloat32)
      return launch_update(Update<Gradient, float>{job}, raw(stream), name);
    if (job.moment_dtype == core::DType::kBFloat16)
      return launch_update(Update<Gradient, core::BFloat16>{job}, raw(stream), name);
    refuse("moments", kOfMoments, job.moment_dtype);
  }
};

}  // namespace

std::shared_ptr<DeviceKernels> make_device_kernels() { return std::make_shared<CudaKernels>(); }

}  // namespace sidestream::optim

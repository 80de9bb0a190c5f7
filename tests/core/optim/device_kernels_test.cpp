// CUDA kernels against the same formulas on the processor. Needs a GPU.
#include "core/optim/device_kernels.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/core/optim/flat_problem.hpp"
#include "tests/core/optim/host_kernels.hpp"

namespace sidestream::optim {
namespace {

void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// A copy of host data on the device.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host) : size_(host.size()) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(T)));
    put(host);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }

  // There when it returns: a copy from memory that is not pinned may return before its last part
  // has arrived, and the streams of the tests wait for no other.
  void put(const std::vector<T>& host) {
    check(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());
  }
  std::vector<T> get() const {
    std::vector<T> host(size_);
    check(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

// The state of one optimizer: on the device, or in host memory.
template <template <typename> typename Memory>
struct State {
  explicit State(const FlatProblem& p)
      : pieces(p.pieces),
        first_block(p.first_block),
        weights(p.weights),
        first(p.first),
        second(p.second),
        low(p.low),
        narrow_first(p.low),
        narrow_second(p.low),
        squares(std::vector<double>(p.pieces.size())),
        parameter_squares(std::vector<double>(p.sizes.size())),
        scalars(std::vector<StepScalars>(1)),
        rule(std::vector<StepRule>(1)) {}

  void settle(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g, int step,
              DeviceStream stream) {
    settle_by({.average = 0.25, .max_norm = 1, .step = step}, kernels, p, g, stream);
  }
  void settle_by(const ClipRule& clip, DeviceKernels& kernels, const FlatProblem& p,
                 const FlatGradients& g, DeviceStream stream) {
    const SgdCoefficients sgd{.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f};
    const int step = static_cast<int>(clip.step);
    kernels.set_rule({.clip = clip,
                      .rounding = {.seed = 1337, .step = step},
                      .adamw_with_decay = p.adamw(step, true),
                      .adamw_without_decay = p.adamw(step, false),
                      .sgd_with_decay = sgd,
                      .sgd_without_decay = sgd},
                     rule.data(), stream);
    kernels.squares({{pieces.data(), p.pieces.size()}, g, squares.data()}, stream);
    kernels.settle({squares.data(), first_block.data(), p.sizes.size(), parameter_squares.data(),
                    scalars.data(), rule.data()},
                   stream);
  }
  void adamw(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g, int step,
             DeviceStream stream) {
    settle(kernels, p, g, step, stream);
    kernels.adamw({{pieces.data(), p.pieces.size()},
                   g,
                   weights.data(),
                   first.data(),
                   second.data(),
                   low.data(),
                   scalars.data(),
                   rule.data()},
                  stream);
  }
  void adamw_of_narrow_moments(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g,
                               int step, DeviceStream stream) {
    settle(kernels, p, g, step, stream);
    kernels.adamw({.table = {pieces.data(), p.pieces.size()},
                   .gradients = g,
                   .weights = weights.data(),
                   .first_moments = narrow_first.data(),
                   .second_moments = narrow_second.data(),
                   .low_precision = low.data(),
                   .scalars = scalars.data(),
                   .rule = rule.data(),
                   .moment_dtype = core::DType::kBFloat16},
                  stream);
  }
  void sgd_of_narrow_momentum(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g,
                              int step, DeviceStream stream) {
    settle(kernels, p, g, step, stream);
    kernels.sgd({.table = {pieces.data(), p.pieces.size()},
                 .gradients = g,
                 .weights = weights.data(),
                 .momentum = narrow_first.data(),
                 .low_precision = low.data(),
                 .scalars = scalars.data(),
                 .rule = rule.data(),
                 .moment_dtype = core::DType::kBFloat16},
                stream);
  }
  void half(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g,
            const LossScaleConfig& scaling, core::Float16* copy, int step, bool adamw,
            DeviceStream stream) {
    settle_by({.average = 0.25,
               .max_norm = 1,
               .step = step,
               .loss_scale = scaling,
               .lr = 1e-3 * step,
               .beta1 = 0.9,
               .beta2 = 0.95},
              kernels, p, g, stream);
    const PieceTable table{pieces.data(), p.pieces.size()};
    if (!adamw)
      return kernels.sgd(
          {table, g, weights.data(), first.data(), copy, scalars.data(), rule.data()}, stream);
    kernels.adamw(
        {table, g, weights.data(), first.data(), second.data(), copy, scalars.data(), rule.data()},
        stream);
  }
  void sgd(DeviceKernels& kernels, const FlatProblem& p, const FlatGradients& g, int step,
           DeviceStream stream) {
    settle(kernels, p, g, step, stream);
    kernels.sgd({{pieces.data(), p.pieces.size()},
                 g,
                 weights.data(),
                 first.data(),
                 low.data(),
                 scalars.data(),
                 rule.data()},
                stream);
  }

  Memory<DevicePiece> pieces;
  Memory<std::uint32_t> first_block;
  Memory<float> weights, first, second;
  Memory<core::BFloat16> low, narrow_first, narrow_second;
  Memory<double> squares, parameter_squares;
  Memory<StepScalars> scalars;
  Memory<StepRule> rule;
};

template <typename T>
using OnHost = std::vector<T>;

struct DeviceKernelsTest : testing::TestWithParam<bool> {
  void SetUp() override {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    kernels = make_device_kernels();
  }
  void TearDown() override { cudaStreamDestroy(stream); }

  // Runs twenty steps on both; `update` is a member of State.
  template <typename Gradients, typename Update>
  void compare(const Gradients& gradients_at, core::DType dtype, const Update& update) {
    const FlatProblem problem;
    State<OnDevice> device(problem);
    State<OnHost> host(problem);
    HostKernels reference;
    OnDevice on_device(gradients_at(problem, 1));
    for (int step = 1; step <= 20; ++step) {
      const auto gradients = gradients_at(problem, step);
      check(cudaStreamSynchronize(stream));
      on_device.put(gradients);
      update(device, *kernels, problem, FlatGradients{on_device.data(), dtype}, step, stream);
      update(host, reference, problem, FlatGradients{gradients.data(), dtype}, step, nullptr);
    }
    check(cudaStreamSynchronize(stream));
    expect_near(device.weights.get(), host.weights);
    expect_near(device.first.get(), host.first);
    expect_near(device.second.get(), host.second);
    expect_nearly_all_same(device.low.get(), host.low);
    const StepScalars found = device.scalars.get()[0];
    EXPECT_NEAR(found.grad_norm, host.scalars[0].grad_norm, 1e-12 * host.scalars[0].grad_norm);
    EXPECT_EQ(found.first_bad_step, 0);
  }

  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
    const std::vector<double> wide(expected.begin(), expected.end());
    EXPECT_LT(relative_distance(found, wide), 1e-6);
  }

  static void expect_nearly_all_same(const std::vector<core::BFloat16>& found,
                                     const std::vector<core::BFloat16>& expected) {
    std::size_t others = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) others += found[i].bits != expected[i].bits;
    EXPECT_LT(others, expected.size() / 1000);
  }

  cudaStream_t stream = nullptr;
  std::shared_ptr<DeviceKernels> kernels;
};

TEST_P(DeviceKernelsTest, twenty_updates_equal_the_processor) {
  const bool adamw = GetParam();
  const auto update = [adamw](auto& state, auto&... arguments) {
    adamw ? state.adamw(arguments...) : state.sgd(arguments...);
  };
  const auto step = [&](auto& state, DeviceKernels& k, const FlatProblem& p, FlatGradients g,
                        int number, DeviceStream s) { update(state, k, p, g, number, s); };

  compare(
      [](const FlatProblem& p, int seed) { return p.gradients(static_cast<std::uint32_t>(seed)); },
      core::DType::kFloat32, step);
  compare([](const FlatProblem& p,
             int seed) { return rounded(p.gradients(static_cast<std::uint32_t>(seed))); },
          core::DType::kBFloat16, step);
}

// A last bit of a norm that is summed otherwise may let a moment fall on the other side, but hardly
// any.
TEST_P(DeviceKernelsTest, narrow_moments_have_the_bits_of_the_processor) {
  const FlatProblem problem;
  State<OnDevice> device(problem);
  State<OnHost> host(problem);
  HostKernels reference;
  OnDevice on_device(problem.gradients(1));
  const auto update = [&](auto& state, auto&... arguments) {
    GetParam() ? state.adamw_of_narrow_moments(arguments...)
               : state.sgd_of_narrow_momentum(arguments...);
  };
  for (int step = 1; step <= 5; ++step) {
    const auto gradients = problem.gradients(static_cast<std::uint32_t>(step));
    check(cudaStreamSynchronize(stream));
    on_device.put(gradients);
    FlatGradients there{on_device.data(), core::DType::kFloat32};
    FlatGradients here{gradients.data(), core::DType::kFloat32};
    DeviceStream none = nullptr;
    DeviceStream ours = stream;
    update(device, *kernels, problem, there, step, ours);
    update(host, reference, problem, here, step, none);
  }
  check(cudaStreamSynchronize(stream));
  expect_near(device.weights.get(), host.weights);
  expect_nearly_all_same(device.narrow_first.get(), host.narrow_first);
  expect_nearly_all_same(device.narrow_second.get(), host.narrow_second);
  expect_nearly_all_same(device.low.get(), host.low);
}

TEST_P(DeviceKernelsTest, rounding_has_the_bits_of_the_processor) {
  const auto values = normal_floats(100003, 8);
  const OnDevice from(values);
  OnDevice to(std::vector<core::BFloat16>(values.size()));
  const auto half = GetParam() ? RoundingHalf::kFirstMoment : RoundingHalf::kSecondMoment;
  const RoundingPlace place = rounding_place({.seed = 1337, .step = 4}, 3, 0);
  std::vector<core::BFloat16> expected(values.size());

  kernels->round({from.data(), to.data(), values.size(), place, half}, stream);
  check(cudaStreamSynchronize(stream));
  round_stochastically(values, expected, place, half);

  EXPECT_TRUE(same_bits(to.get(), expected));
}

TEST_P(DeviceKernelsTest, infinity_is_found_and_stops_updates) {
  const FlatProblem problem;
  State<OnDevice> device(problem);
  auto gradients = problem.gradients(1);
  gradients[problem.gradient_at[3] + 39999] = INFINITY;
  const OnDevice on_device(gradients);

  device.adamw(*kernels, problem, {on_device.data(), core::DType::kFloat32}, 5, stream);
  check(cudaStreamSynchronize(stream));

  EXPECT_EQ(device.scalars.get()[0].first_bad_step, 5);
  EXPECT_TRUE(same_bits(device.weights.get(), problem.weights));
}

std::vector<core::Float16> halves(const std::vector<float>& values) {
  std::vector<core::Float16> result;
  for (const float value : values) result.emplace_back(value);
  return result;
}

// Gradients and copy in fp16 under a loss scale, whose second step of four overflows.
TEST_P(DeviceKernelsTest, half_precision_with_a_loss_scale_equals_the_processor) {
  const FlatProblem problem;
  State<OnDevice> device(problem);
  State<OnHost> host(problem);
  const std::vector<core::Float16> no_copy(problem.elements);
  OnDevice device_copy(no_copy);
  std::vector<core::Float16> host_copy = no_copy;
  HostKernels reference;
  OnDevice on_device(halves(problem.gradients(1)));
  const LossScaleConfig scaling{.kind = LossScaling::kDynamic, .scale = 256, .interval = 2};
  const std::vector<StepScalars> start = {{.loss_scale = first_state(scaling)}};
  device.scalars.put(start);
  host.scalars = start;
  for (int step = 1; step <= 4; ++step) {
    auto gradients = halves(problem.gradients(static_cast<std::uint32_t>(step)));
    if (step == 2) gradients[problem.gradient_at[3] + 39999] = core::Float16(1e9f);
    check(cudaStreamSynchronize(stream));
    on_device.put(gradients);
    const auto update = [&](auto& state, DeviceKernels& with, const void* data, core::Float16* copy,
                            DeviceStream on) {
      state.half(with, problem, {data, core::DType::kFloat16}, scaling, copy, step, GetParam(), on);
    };
    update(device, *kernels, on_device.data(), device_copy.data(), stream);
    update(host, reference, gradients.data(), host_copy.data(), nullptr);
  }
  check(cudaStreamSynchronize(stream));
  const StepScalars found = device.scalars.get()[0];
  EXPECT_EQ(found.loss_scale, host.scalars[0].loss_scale);
  EXPECT_EQ(found.loss_scale.left_out, 1);
  EXPECT_EQ(found.first_bad_step, 0);
  expect_near(device.weights.get(), host.weights);
  std::size_t others = 0;
  const auto copy = device_copy.get();
  for (std::size_t i = 0; i < copy.size(); ++i) others += copy[i].bits != host_copy[i].bits;
  EXPECT_LT(others, copy.size() / 100);
}

INSTANTIATE_TEST_SUITE_P(AdamWAndSgd, DeviceKernelsTest, testing::Bool());

}  // namespace
}  // namespace sidestream::optim

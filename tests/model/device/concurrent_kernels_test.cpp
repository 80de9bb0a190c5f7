// The kernels with all threads of a block at once, by the code that CUDA compiles (ThreadBlock),
// against their arithmetic thread after thread: the same bits. With the thread sanitizer: without
// a race.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "core/base/float16.hpp"
#include "tests/model/device/host_block.hpp"
#include "tests/model/device/processor_threads.hpp"

namespace sidestream::model::device {
namespace {

using Bytes = std::vector<std::byte>;

template <typename... Ts>
Bytes bytes_of(const std::vector<Ts>&... outputs) {
  Bytes all;
  const auto append = [&](const auto& output) {
    const auto* first = reinterpret_cast<const std::byte*>(output.data());
    all.insert(all.end(), first, first + output.size() * sizeof(output.front()));
  };
  (append(outputs), ...);
  return all;
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr core::DType kIs = core::DType::kFloat32;
};
template <>
struct DTypeOf<core::BFloat16> {
  static constexpr core::DType kIs = core::DType::kBFloat16;
};

template <>
struct DTypeOf<core::Float16> {
  static constexpr core::DType kIs = core::DType::kFloat16;
};

template <typename T>
struct ConcurrentKernelsTest : testing::Test {
  static constexpr core::DType kDType = DTypeOf<T>::kIs;

  std::vector<T> drawn(std::int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = T(normal(random));
    return values;
  }
  static std::vector<T> room(std::int64_t count) {
    return std::vector<T>(static_cast<std::size_t>(count));
  }
  static std::vector<float> floats(std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count));
  }

  // run(kernels) -> what they wrote, in so many blocks at most.
  using Run = std::function<Bytes(DeviceKernels&)>;
  static void expect_the_same(const Run& run) { expect_the_same(HostGrid().most_blocks, run); }
  static void expect_the_same(std::int64_t most_blocks, const Run& run) {
    HostKernels one_after_another;
    ThreadKernels all_at_once;
    one_after_another.grid().most_blocks = all_at_once.grid().most_blocks = most_blocks;
    const Bytes expected = run(one_after_another);
    EXPECT_EQ(run(all_at_once), expected);
  }

  std::mt19937 random{11};
};

using Types = testing::Types<float, core::BFloat16, core::Float16>;
TYPED_TEST_SUITE(ConcurrentKernelsTest, Types);

// One sum after another over all threads, of what each took from the last one.
struct RepeatedSums {
  static constexpr const char* kName = "repeated_sums";
  static constexpr int kMostThreads = 256;
  float* out;  // [threads]

  template <typename Block>
  void operator()(Block& block, const BlockPlace& /*place*/) const {
    block.each([&](int thread) { out[thread] = static_cast<float>(thread % 7); });
    for (int i = 0; i < 50; ++i) {
      const Two sums = block.reduce([&](int thread) { return Two{out[thread], 1}; }, Add());
      block.each([&](int thread) { out[thread] += sums.first / sums.second; });
      const float sum = block.reduce([&](int thread) { return out[thread]; }, Add());
      block.each([&](int thread) { out[thread] /= 1 + sum; });
    }
  }
};

TEST(ThreadBlockTest, sums_may_follow_each_other_at_once) {
  for (const std::int64_t threads : {32, 96, 256}) {
    std::vector<float> expected(static_cast<std::size_t>(threads)), sums = expected;
    HostGrid().run({.threads = threads}, RepeatedSums{expected.data()}, nullptr);
    ThreadGrid().run({.threads = threads}, RepeatedSums{sums.data()}, nullptr);
    EXPECT_EQ(sums, expected) << threads << " threads";
  }
}

struct NormShape {
  std::int64_t rows, width, blocks;
};

// A warp alone with few and many floats a thread, a row of more warps in backward, many warps: a
// row for each block; and two blocks, each of which goes through several rows, the next under way
// while one is computed.
constexpr NormShape kNormShapes[] = {{8, 200, 8},  {6, 760, 6}, {5, 1000, 5},
                                     {4, 8192, 4}, {7, 760, 2}, {5, 1600, 2}};

TYPED_TEST(ConcurrentKernelsTest, norm_forward) {
  for (const auto& [rows, width, blocks] : kNormShapes) {
    const auto x = this->drawn(rows * width), branch = this->drawn(rows * width),
               weight = this->drawn(width), bias = this->drawn(width);
    this->expect_the_same(blocks, [&, rows = rows, width = width](DeviceKernels& kernels) {
      auto sum = this->room(rows * width), normed = sum;
      auto mean = this->floats(rows), rstd = mean;
      kernels.norm_forward({.dtype = this->kDType,
                            .rows = rows,
                            .width = width,
                            .residual = x.data(),
                            .branch = branch.data(),
                            .weight = weight.data(),
                            .bias = bias.data(),
                            .sum = sum.data(),
                            .normed = normed.data(),
                            .mean = mean.data(),
                            .rstd = rstd.data(),
                            .eps = 1e-5f},
                           nullptr);
      return bytes_of(sum, normed, mean, rstd);
    });
  }
}

TYPED_TEST(ConcurrentKernelsTest, norm_backward) {
  for (const auto& [rows, width, blocks] : kNormShapes) {
    const auto x = this->drawn(rows * width), normed_grad = this->drawn(rows * width),
               sum_grad = this->drawn(rows * width), weight = this->drawn(width);
    const std::vector<float> mean(static_cast<std::size_t>(rows), 0.25f), rstd(mean.size(), 1.5f);
    const std::int64_t parts = norm_parts(rows, width);
    this->expect_the_same(blocks, [&, rows = rows, width = width](DeviceKernels& kernels) {
      auto x_grad = this->room(rows * width);
      auto partial = this->floats(3 * parts * width);
      kernels.norm_backward({.dtype = this->kDType,
                             .rows = rows,
                             .width = width,
                             .x = x.data(),
                             .normed_grad = normed_grad.data(),
                             .sum_grad = sum_grad.data(),
                             .weight = weight.data(),
                             .mean = mean.data(),
                             .rstd = rstd.data(),
                             .x_grad = x_grad.data(),
                             .partial = partial.data()},
                            nullptr);
      return bytes_of(x_grad, partial);
    });
  }
}

TYPED_TEST(ConcurrentKernelsTest, sums_of_columns) {
  const std::int64_t parts = 150, width = 70;
  std::vector<float> partial = this->floats(3 * parts * width);
  std::iota(partial.begin(), partial.end(), 0.25f);
  this->expect_the_same([&](DeviceKernels& kernels) {
    auto first = this->room(width), second = first, third = first;
    kernels.column_sums({.dtype = this->kDType,
                         .partial = partial.data(),
                         .parts = parts,
                         .width = width,
                         .first = first.data(),
                         .second = second.data(),
                         .third = third.data()},
                        nullptr);
    return bytes_of(first, second, third);
  });
}

// Rows that fit their block's memory and one that does not, several for each block.
TYPED_TEST(ConcurrentKernelsTest, cross_entropy) {
  for (const std::int64_t vocabulary :
       {std::int64_t{500}, std::int64_t{9000}, std::int64_t{40000}}) {
    const std::int64_t rows = 11, stride = divided_up(vocabulary, kLogitStride) * kLogitStride;
    const auto logits = this->drawn(rows * stride);
    std::vector<std::int64_t> targets(static_cast<std::size_t>(rows));
    for (std::int64_t& target : targets)
      target = static_cast<std::int64_t>(this->random()) % vocabulary;
    targets[3] = kIgnoredTarget;
    this->expect_the_same([&](DeviceKernels& kernels) {
      auto gradient = logits;
      auto losses = this->floats(rows);
      kernels.cross_entropy({.dtype = this->kDType,
                             .rows = rows,
                             .stride = stride,
                             .vocab_size = vocabulary,
                             .logits = gradient.data(),
                             .targets = targets.data(),
                             .losses = losses.data(),
                             .gradient_scale = 0.5f},
                            nullptr);
      return bytes_of(losses, gradient);
    });
  }
}

TYPED_TEST(ConcurrentKernelsTest, gelu_and_sums_of_rows) {
  const std::int64_t rows = 19, width = 1100;
  const auto before = this->drawn(rows * width), grad = this->drawn(rows * width);
  const std::int64_t parts = row_parts(rows, width);
  this->expect_the_same([&](DeviceKernels& kernels) {
    auto activation = this->room(rows * width), again = activation, gradient = grad;
    auto of_gelu = this->floats(parts * width), of_rows = of_gelu;
    kernels.gelu_forward({.dtype = this->kDType,
                          .count = rows * width,
                          .before = before.data(),
                          .activation = activation.data()},
                         nullptr);
    kernels.gelu_backward({.dtype = this->kDType,
                           .rows = rows,
                           .width = width,
                           .before = before.data(),
                           .gradient = gradient.data(),
                           .activation = again.data(),
                           .bias_partial = of_gelu.data()},
                          nullptr);
    kernels.row_sums({.dtype = this->kDType,
                      .rows = rows,
                      .width = width,
                      .x = grad.data(),
                      .partial = of_rows.data()},
                     nullptr);
    return bytes_of(activation, again, gradient, of_gelu, of_rows);
  });
}

TYPED_TEST(ConcurrentKernelsTest, scale) {
  const auto values = this->drawn(3000);
  const float factor = 0.75f;
  this->expect_the_same([&](DeviceKernels& kernels) {
    auto scaled = values;
    kernels.scale(
        {.dtype = this->kDType, .count = 3000, .values = scaled.data(), .factor = &factor},
        nullptr);
    return bytes_of(scaled);
  });
}

TYPED_TEST(ConcurrentKernelsTest, embedding_and_its_gradient) {
  const std::int64_t batch = 5, time = 40, vocabulary = 13, width = 1100, count = batch * time;
  const auto tokens = this->drawn(vocabulary * width), positions = this->drawn(time * width),
             grads = this->drawn(count * width);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count)), order(ids.size());
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(this->random()) % vocabulary;
  std::iota(order.begin(), order.end(), 0);
  const auto id_at = [&](std::int64_t place) { return ids[static_cast<std::size_t>(place)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return id_at(a) < id_at(b); });
  std::vector<std::int32_t> sorted;
  for (const std::int64_t place : order) sorted.push_back(static_cast<std::int32_t>(id_at(place)));
  this->expect_the_same([&](DeviceKernels& kernels) {
    auto embedded = this->room(count * width), target = tokens;
    auto pieces = this->floats(token_tiles(count) * 2 * width);
    kernels.embed({.dtype = this->kDType,
                   .batch = batch,
                   .time = time,
                   .vocabulary = vocabulary,
                   .width = width,
                   .ids = ids.data(),
                   .tokens = tokens.data(),
                   .positions = positions.data(),
                   .out = embedded.data()},
                  nullptr);
    kernels.token_gradients({.dtype = this->kDType,
                             .count = count,
                             .vocabulary = vocabulary,
                             .width = width,
                             .gradients = grads.data(),
                             .ids = sorted.data(),
                             .order = order.data(),
                             .pieces = pieces.data(),
                             .target = target.data()},
                            nullptr);
    return bytes_of(embedded, target);
  });
}

}  // namespace
}  // namespace sidestream::model::device

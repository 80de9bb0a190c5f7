// Elementary functions and rounding of the kernels against double, in every width of vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "model/kernels/lanes.hpp"
#include "model/kernels/rounding.hpp"
#include "model/kernels/simd_math.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

std::vector<float> between(float low, float high, std::int64_t count) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1);
  return x;
}

double exact_gelu(double x) {
  constexpr double kRoot = 0.79788456080286535588;  // sqrt(2/pi)
  return 0.5 * x * (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x)));
}

double exact_slope(double x) {
  constexpr double kRoot = 0.79788456080286535588;
  const double t = std::tanh(kRoot * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRoot * (1 + 3 * 0.044715 * x * x);
}

struct Outputs {
  std::vector<float> exponential, value, slope;
};

template <typename T>
struct ComputeOutputs {
  template <typename L>
  SIDESTREAM_INLINE static void run(const std::vector<float>& x, Outputs* const& out) {
    for_vectors<L>(
        static_cast<std::int64_t>(x.size()), [&](std::int64_t i, std::int64_t count) __attribute__((
                                                 always_inline)) {
          const typename L::Floats lanes = load_lanes<L>(x.data() + i, count);
          const auto gelu = gelu_for<T>(lanes);
          store_lanes<L>(exp_for<T>(lanes), count, out->exponential.data() + i);
          store_lanes<L>(gelu.value, count, out->value.data() + i);
          store_lanes<L>(gelu.slope, count, out->slope.data() + i);
        });
  }
};

enum class Width { kEight, kSixteen, kSixteenRounding };

// Those that this processor has; eight lanes are compiled for any.
std::vector<Width> widths() {
  std::vector<Width> result{Width::kEight};
  if (has_avx512()) result.push_back(Width::kSixteen);
  if (has_avx512_bf16()) result.push_back(Width::kSixteenRounding);
  return result;
}

template <typename Kernel, typename... Arguments>
void run_in(Width width, const Arguments&... arguments) {
  switch (width) {
    case Width::kEight:
      return in_any_lanes<Kernel>(arguments...);
    case Width::kSixteen:
      return in_sixteen_lanes<Kernel>(arguments...);
    case Width::kSixteenRounding:
      return in_rounding_lanes<Kernel>(arguments...);
  }
}

template <typename T>
Outputs outputs_of(Width width, const std::vector<float>& x) {
  Outputs out{std::vector<float>(x.size()), std::vector<float>(x.size()),
              std::vector<float>(x.size())};
  run_in<ComputeOutputs<T>>(width, x, &out);
  return out;
}

struct Promise {
  double exponential_error, gelu_error;
};

template <typename T>
void expect_close_to_double(Width width, const Promise& promise) {
  SCOPED_TRACE(width == Width::kEight ? "eight lanes" : "sixteen lanes");
  const std::vector<float> x = between(-30, 30, 100'003);  // the last vector is a short one

  const Outputs out = outputs_of<T>(width, x);

  for (std::size_t i = 0; i < x.size(); ++i) {
    const double number = x[i], exact = std::exp(number);
    ASSERT_NEAR(out.exponential[i], exact, promise.exponential_error * exact) << number;
    ASSERT_NEAR(out.value[i], exact_gelu(number), promise.gelu_error * std::abs(number) + 1e-30)
        << number;
    ASSERT_NEAR(out.slope[i], exact_slope(number), 4 * promise.gelu_error) << number;
  }
}

TEST(VectorMathTest, exponential_and_gelu_areAsExactAsTheirTypeNeeds) {
  for (const Width width : widths()) {
    expect_close_to_double<float>(width, {.exponential_error = 3e-7, .gelu_error = 1e-6});
    // The reciprocal of sixteen lanes is an instruction's.
    const double gelu_error = width == Width::kEight ? 2e-5 : 8e-5;
    expect_close_to_double<BFloat16>(width, {.exponential_error = 6e-6, .gelu_error = gelu_error});
  }
}

template <typename T>
void expect_nothing_far_below(Width width) {
  constexpr float kNothing = 3e-38f;
  const std::vector<float> x = {-87.0f, -1e4f, -8.8e6f, -1.3e7f, -1e9f, -1e20f, -1e38f};
  for (const float value : outputs_of<T>(width, x).exponential) {
    EXPECT_GE(value, 0);
    EXPECT_LE(value, kNothing);
  }
  for (const float x_bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()})
    EXPECT_TRUE(std::isnan(outputs_of<T>(width, {x_bad}).exponential[0]));
}

TEST(VectorMathTest, exponential_farBelow_isNothing) {
  for (const Width width : widths()) {
    expect_nothing_far_below<float>(width);
    expect_nothing_far_below<BFloat16>(width);
  }
}

template <typename T>
void expect_number_or_nothing() {
  for (const Width width : widths()) {
    for (const float x : {100.0f, 1e4f, 1e20f}) {
      const Outputs out = outputs_of<T>(width, {x, -x});
      EXPECT_NEAR(out.value[0], x, 1e-4f * x);
      EXPECT_NEAR(out.value[1] / x, 0, 1e-20f);
      EXPECT_NEAR(out.slope[0], 1, 1e-4f);
      EXPECT_NEAR(out.slope[1], 0, 1e-4f);
    }
  }
}

TEST(VectorMathTest, gelu_ofLargeNumbers_isTheNumberOrNothing) {
  expect_number_or_nothing<float>();
  expect_number_or_nothing<BFloat16>();
}

TEST(VectorMathTest, exponential_ofFarNumbers_isNothingOrHuge) {
  for (const Width width : widths()) {
    const Outputs out = outputs_of<BFloat16>(width, {-1e4f, -200.0f, 200.0f});
    EXPECT_LT(out.exponential[0], 1e-36f);
    EXPECT_LT(out.exponential[1], 1e-36f);
    EXPECT_GT(out.exponential[2], 1e36f);
  }
}

template <typename T>
void expect_not_a_number_stays_none() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Width width : widths()) {
    const Outputs out = outputs_of<T>(width, {1.0f, nan, 2.0f});

    EXPECT_TRUE(std::isnan(out.value[1]) && std::isnan(out.slope[1]) &&
                std::isnan(out.exponential[1]));
    EXPECT_FALSE(std::isnan(out.value[0]) || std::isnan(out.value[2]));
  }
}

TEST(VectorMathTest, notANumber_staysNone) {
  expect_not_a_number_stays_none<float>();
  expect_not_a_number_stays_none<BFloat16>();
}

template <typename L>
void expect_lanes_joined() {
  std::vector<float> x(static_cast<std::size_t>(L::kCount));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(1u << i);
  const typename L::Floats lanes = load_lanes<L>(x.data());

  EXPECT_EQ(sum_of<L>(lanes), static_cast<float>((1u << L::kCount) - 1));
  EXPECT_EQ(max_of<L>(lanes), x.back());
  EXPECT_EQ(max_of<L>(typename L::Floats(-lanes)), -1.0f);
  const auto hidden = lanes_before<L>(32, 35);
  EXPECT_EQ(sum_of<L>(hidden ? lanes : typename L::Floats{}), 7.0f);
}

TEST(LanesTest, sumsMaximaAndMasks_coverEveryLane) {
  expect_lanes_joined<EightLanes>();
  expect_lanes_joined<SixteenLanes>();
}

struct AddedUp {
  template <typename L>
  SIDESTREAM_INLINE static void run(const std::vector<float>& x, float* const& sum) {
    *sum = sum_over<L>(
        static_cast<std::int64_t>(x.size()), [&](std::int64_t i, std::int64_t count)
                                                 __attribute__((always_inline)) {
                                                   return load_lanes<L>(x.data() + i, count) + 1.0f;
                                                 });
  }
};

// What lies past the end of a row is not added, though it is computed.
TEST(LanesTest, rows_ofEveryLength_areAddedUp) {
  for (const Width width : widths()) {
    for (std::size_t n = 0; n < 150; ++n) {
      float sum = -1;
      run_in<AddedUp>(width, std::vector<float>(n, 2.0f), &sum);
      ASSERT_EQ(sum, 3.0f * static_cast<float>(n));
    }
  }
}

struct Stored {
  template <typename L>
  SIDESTREAM_INLINE static void run(const std::vector<float>& x, BFloat16* const& out,
                                    float* const& as_read) {
    const auto element = [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
      return load_lanes<L>(x.data() + i, count);
    };
    const auto n = static_cast<std::int64_t>(x.size());
    compute_lanes<L>(out, n, element);
    compute_lanes<L>(
        as_read, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          return as_stored<L, BFloat16>(element(i, count));
        });
  }
};

TEST(LanesTest, storedNumbers_areRoundedLikeNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> x{0.0f, -0.0f, 3e38f, kInfinity, -kInfinity, 1.00390625f, 1.01171875f};
  while (x.size() < 83) x.push_back(normal(generator));
  for (const Width width : widths()) {
    std::vector<BFloat16> out(x.size() + 1, BFloat16(9.0f));
    std::vector<float> as_read(x.size());

    run_in<Stored>(width, x, out.data(), as_read.data());

    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(out[i].bits, BFloat16(x[i]).bits) << x[i];
      ASSERT_EQ(as_read[i], static_cast<float>(out[i])) << x[i];
    }
    EXPECT_EQ(static_cast<float>(out.back()), 9.0f);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    run_in<Stored>(width, std::vector<float>{nan, 1.0f}, out.data(), as_read.data());
    EXPECT_TRUE(std::isnan(static_cast<float>(out[0])) && std::isnan(as_read[0]));
  }
}

TEST(RoundingTest, rows_ofEveryLength_areRoundedLikeNumbers_andNothingBesideThem) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(100);
  for (float& number : x) number = normal(generator);
  const float special[] = {0.0f,
                           -0.0f,
                           3e38f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           1.00390625f,
                           1.01171875f};
  std::copy(std::begin(special), std::end(special), x.begin() + 3);
  for (std::size_t n = 0; n <= x.size(); ++n) {
    std::vector<BFloat16> out(x.size() + 1, BFloat16(9.0f));

    round_row(x.data(), static_cast<std::int64_t>(n), out.data());

    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(out[i].bits, BFloat16(x[i]).bits) << n << " " << i;
    for (std::size_t i = n; i < out.size(); ++i)
      ASSERT_EQ(out[i].bits, BFloat16(9.0f).bits) << n << " " << i;
  }
}

TEST(RoundingTest, notANumber_staysNone) {
  std::vector<float> x(40, std::numeric_limits<float>::quiet_NaN());
  std::vector<BFloat16> out(x.size());

  round_row(x.data(), static_cast<std::int64_t>(x.size()), out.data());

  for (const BFloat16& number : out) EXPECT_TRUE(std::isnan(static_cast<float>(number)));
}

}  // namespace
}  // namespace sidestream::model::kernels

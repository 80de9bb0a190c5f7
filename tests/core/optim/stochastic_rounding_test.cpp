#include "core/optim/stochastic_rounding.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/base/error.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

using core::BFloat16;

constexpr std::uint32_t kDraws = 1u << 16;  // of a half
constexpr std::uint32_t kSomeDraws[] = {0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF};

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint16_t rounded_bits(float value, std::uint32_t draw) {
  return round_stochastically(value, draw).bits;
}

// In double: below or above by how far the value is from the bfloat16 towards zero.
double naive(float value, std::uint32_t draw) {
  const double magnitude = std::abs(static_cast<double>(value));
  const int exponent = magnitude == 0 ? -126 : std::max(std::ilogb(magnitude), -126);
  const double spacing = std::ldexp(1.0, exponent - 7);
  const double below = std::floor(magnitude / spacing) * spacing;
  const bool up = (magnitude - below) / spacing + draw / 65536.0 >= 1;
  const double largest = float_of(0x7F7F0000u);
  return std::copysign(std::min(largest, up ? below + spacing : below), value);
}

TEST(StochasticRoundingTest, what_bfloat16_has_stays_whatever_the_draw) {
  for (std::uint32_t bits = 0; bits < kDraws; ++bits) {
    const float value = float_of(bits << 16);
    if (std::isnan(value)) continue;
    for (const std::uint32_t draw : kSomeDraws) ASSERT_EQ(rounded_bits(value, draw), bits);
  }
}

TEST(StochasticRoundingTest, nan_stays_nan_even_where_its_mark_is_cut_off) {
  for (const std::uint32_t bits :
       {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF80FFFFu, 0xFFFFFFFFu}) {
    for (const std::uint32_t draw : kSomeDraws) {
      const auto found = static_cast<float>(round_stochastically(float_of(bits), draw));
      EXPECT_TRUE(std::isnan(found)) << std::hex << bits;
      EXPECT_EQ(std::signbit(found), bits >> 31 == 1) << std::hex << bits;
    }
  }
}

TEST(StochasticRoundingTest, finite_values_above_the_largest_bfloat16_become_it_and_not_infinity) {
  const float largest = std::numeric_limits<float>::max();
  for (const std::uint32_t draw : kSomeDraws) {
    EXPECT_EQ(rounded_bits(largest, draw), 0x7F7F);
    EXPECT_EQ(rounded_bits(-largest, draw), 0xFF7F);
    EXPECT_EQ(rounded_bits(std::numeric_limits<float>::infinity(), draw), 0x7F80);
    EXPECT_EQ(rounded_bits(-std::numeric_limits<float>::infinity(), draw), 0xFF80);
  }
}

TEST(StochasticRoundingTest, any_bits_round_as_the_definition_says) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float value = float_of(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const std::uint32_t draw = random() % kDraws;
    ASSERT_EQ(static_cast<double>(static_cast<float>(round_stochastically(value, draw))),
              naive(value, draw))
        << value << " " << draw;
  }
}

// Every draw once: the mean is the value itself, exactly.
TEST(StochasticRoundingTest, mean_over_all_draws_is_the_value) {
  for (const std::uint32_t bits : {0x3F800001u, 0x3F80FFFFu, 0xBF9ABCDEu, 0x00000001u, 0x807FFFFFu,
                                   0x00012345u, 0x7F7EFFFFu, 0x33D6BF95u}) {
    const double value = float_of(bits);
    double sum = 0;
    for (std::uint32_t draw = 0; draw < kDraws; ++draw)
      sum += static_cast<double>(static_cast<float>(round_stochastically(float_of(bits), draw)));
    EXPECT_EQ(sum / kDraws, value) << std::hex << bits;
  }
}

// Draws of one kind after another, as numbers in [0, 1).
using Series = std::function<std::uint32_t(std::uint32_t)>;

std::uint32_t draw_at(std::uint64_t seed, std::int64_t step, std::uint64_t parameter,
                      std::uint64_t element) {
  return rounding_draw(rounding_place({seed, step}, parameter, element), /*i=*/0);
}

constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;

const std::vector<std::pair<const char*, Series>> kSeries = {
    {"elements", [](std::uint32_t i) { return draw_at(1337, 1, 0, i); }},
    {"elements of another seed", [](std::uint32_t i) { return draw_at(1338, 1, 0, i); }},
    {"elements of the next step", [](std::uint32_t i) { return draw_at(1337, 2, 0, i); }},
    {"elements of the next parameter", [](std::uint32_t i) { return draw_at(1337, 1, 1, i); }},
    {"next elements", [](std::uint32_t i) { return draw_at(1337, 1, 0, i + 1); }},
    {"elements far on", [](std::uint32_t i) { return draw_at(1337, 1, 0, i + (1u << 20)); }},
    {"elements 2^32 on", [](std::uint32_t i) { return draw_at(1337, 1, 0, i + kTwoTo32); }},
    {"elements 2^33 on", [](std::uint32_t i) { return draw_at(1337, 1, 0, i + 2 * kTwoTo32); }},
    {"every 2^32th element", [](std::uint32_t i) { return draw_at(1337, 1, 0, i * kTwoTo32); }},
    {"steps", [](std::uint32_t i) { return draw_at(1337, i + 1, 3, 5); }},
    {"parameters", [](std::uint32_t i) { return draw_at(1337, 7, i, 5); }},
    {"seeds", [](std::uint32_t i) { return draw_at(i, 7, 3, 5); }}};

constexpr std::uint32_t kSamples = 1u << 18;
constexpr double kDeviations = 4.5;  // of any of the statistics below

std::vector<double> centred(const Series& series, RoundingHalf half) {
  std::vector<double> values(kSamples);
  for (std::uint32_t i = 0; i < kSamples; ++i)
    values[i] = (half_of(series(i), half) + 0.5) / kDraws - 0.5;
  return values;
}

// Of numbers that are equally likely in [-1/2, 1/2) and independent: in standard errors.
double correlation_error(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return std::abs(sum * 12) / std::sqrt(static_cast<double>(a.size()));
}

TEST(StochasticRoundingTest, draws_are_spread_evenly) {
  for (const auto& [name, series] : kSeries) {
    for (const auto half : {RoundingHalf::kFirstMoment, RoundingHalf::kSecondMoment}) {
      constexpr std::size_t kBins = 256;
      std::vector<double> high(kBins), low(kBins);
      double sum = 0;
      for (std::uint32_t i = 0; i < kSamples; ++i) {
        const std::uint32_t draw = half_of(series(i), half);
        high[draw >> 8] += 1;
        low[draw & 0xFF] += 1;
        sum += (draw + 0.5) / kDraws - 0.5;
      }
      EXPECT_LT(std::abs(sum) * std::sqrt(12.0 / kSamples), kDeviations) << name;
      for (const auto& bins : {high, low}) {
        const double expected = static_cast<double>(kSamples) / kBins;
        double chi_square = 0;
        for (const double count : bins)
          chi_square += (count - expected) * (count - expected) / expected;
        EXPECT_LT(std::abs(chi_square - (kBins - 1)) / std::sqrt(2.0 * (kBins - 1)), kDeviations)
            << name;
      }
    }
  }
}

TEST(StochasticRoundingTest, draws_of_two_kinds_have_nothing_to_do_with_each_other) {
  std::vector<std::vector<double>> all;
  for (const auto& [name, series] : kSeries) {
    all.push_back(centred(series, RoundingHalf::kFirstMoment));
    all.push_back(centred(series, RoundingHalf::kSecondMoment));
  }
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_LT(correlation_error(all[a], all[b]), kDeviations)
          << kSeries[a / 2].first << " and " << kSeries[b / 2].first;
    }
  }
}

TEST(StochasticRoundingTest, mean_over_elements_and_over_steps_is_the_value) {
  const float value = float_of(0x3DCCCCCDu);  // 0.1: 0.8 of the way between two bfloat16
  const double spacing = std::ldexp(1.0, -11);
  for (const auto& [name, series] : kSeries) {
    for (const auto half : {RoundingHalf::kFirstMoment, RoundingHalf::kSecondMoment}) {
      double sum = 0;
      for (std::uint32_t i = 0; i < kSamples; ++i) {
        const BFloat16 one = round_stochastically(value, half_of(series(i), half));
        sum += static_cast<double>(static_cast<float>(one)) - static_cast<double>(value);
      }
      const double standard_error = spacing * 0.4 / std::sqrt(static_cast<double>(kSamples));
      EXPECT_LT(std::abs(sum / kSamples), kDeviations * standard_error) << name;
    }
  }
}

// Published values, and what this function has always given: a run that is resumed by a later build
// draws on.
TEST(StochasticRoundingTest, draws_are_the_published_functions_and_never_change) {
  EXPECT_EQ(core::mix_bits(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(core::mix_bits(0x9E3779B97F4A7C15u), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(rounding_draw({}, 0), 0u);
  EXPECT_EQ(rounding_draw({}, 1), 0x514E28B7u);
  EXPECT_EQ(rounding_draw({}, 0xFFFFFFFFu), 0x81F16F39u);
  EXPECT_EQ(draw_at(1337, 1, 0, 0), 0xAF237A8Fu);
  EXPECT_EQ(draw_at(1337, 100, 7, 123456), 0x88F451F0u);
}

// A range that crosses a multiple of 2^32 draws what its elements draw one by one.
TEST(StochasticRoundingTest, ranges_across_two_to_the_32_have_the_draws_of_their_elements) {
  const std::uint64_t first = 3 * kTwoTo32 - 1000;
  const RoundingPlace place = rounding_place({5, 9}, 2, first);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(rounding_draw(place, i), draw_at(5, 9, 2, first + i)) << i;
    EXPECT_EQ(rounding_draw(place.from(i), 7), draw_at(5, 9, 2, first + i + 7)) << i;
  }
}

TEST(StochasticRoundingTest, ranges_have_the_bits_of_their_elements_in_any_split) {
  const auto values = normal_floats(5003, 3);
  const RoundingSource source{.seed = 5, .step = 9};
  for (const auto half : {RoundingHalf::kFirstMoment, RoundingHalf::kSecondMoment}) {
    std::vector<BFloat16> expected, whole(values.size()), parts(values.size());
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      const std::uint32_t draw = rounding_draw(rounding_place(source, 2, 0), i);
      expected.push_back(round_stochastically(values[i], half_of(draw, half)));
    }
    round_stochastically(values, whole, rounding_place(source, 2, 0), half);
    for (std::size_t first = 0; first < values.size(); first += 97) {
      const std::size_t n = std::min<std::size_t>(97, values.size() - first);
      round_stochastically(std::span(values).subspan(first, n), std::span(parts).subspan(first, n),
                           rounding_place(source, 2, first), half);
    }
    EXPECT_TRUE(same_bits(whole, expected));
    EXPECT_TRUE(same_bits(parts, expected));
  }
}

TEST(StochasticRoundingTest, ranges_of_different_length_throw) {
  const auto values = normal_floats(8, 1);
  std::vector<BFloat16> kept(7);

  EXPECT_THROW(round_stochastically(values, kept, {}, RoundingHalf::kFirstMoment), core::Error);
}

}  // namespace
}  // namespace sidestream::optim

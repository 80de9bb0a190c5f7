// clock.json against the reader that aligns traces with it.
#include "launch/recording/clock_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "profiling/trace/clock_samples.hpp"
#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

// Two ranks in the same barriers; the second one's clock is ahead by `offset_ns` and runs faster by
// `drift_ppm`.
std::vector<ClockNotes> barriers_of(std::int64_t offset_ns, double drift_ppm) {
  std::mt19937 random(3);
  std::vector<ClockNotes> ranks(2);
  const auto other = [&](std::int64_t t) {
    return t + offset_ns + std::llround(drift_ppm * 1e-6 * static_cast<double>(t));
  };
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{20'000'000'000}}) {
    std::int64_t at = 1'000'000'000 + window;
    for (int i = 0; i < 24; ++i) {
      const std::int64_t enter_0 = at + static_cast<std::int64_t>(random() % 20'000);
      const std::int64_t enter_1 = at + static_cast<std::int64_t>(random() % 20'000);
      const std::int64_t done = std::max(enter_0, enter_1) + 30'000;
      ranks[0].barriers.push_back({enter_0, done + static_cast<std::int64_t>(random() % 9'000)});
      ranks[1].barriers.push_back(
          {other(enter_1), other(done + static_cast<std::int64_t>(random() % 9'000))});
      at = done + 20'000;
    }
  }
  return ranks;
}

trace::ClockSamples read_back(const std::string& text) {
  const core::ScratchFolder scratch;
  core::write_file_atomically(scratch.path() / "clock.json", text);
  return trace::read_clock_samples(scratch.path() / "clock.json").value();
}

TEST(ClockFileTest, offsetAndDrift_areRecoveredWithinWhatIsPublished) {
  const auto ranks = barriers_of(100'000'000, 20);

  const auto samples = read_back(clock_text(ranks, {"a", "b"}));

  const trace::RankSamples& one = samples.at(1);
  const trace::ClockFit fit = trace::fit_clock(one.pairs);
  const std::int64_t middle = 11'000'000'000;
  const std::int64_t on_other_clock =
      middle + 100'000'000 + std::llround(20e-6 * static_cast<double>(middle));
  const double error_us =
      std::abs(static_cast<double>(fit.clock.to_common(on_other_clock) - middle)) / 1000;
  EXPECT_LE(error_us, static_cast<double>(one.round_trip_ns) / 2000);
  EXPECT_NEAR(fit.clock.drift_ppm, -20, fit.drift_uncertainty_ppm);
  EXPECT_NE(samples.at(0).boot_id, one.boot_id);
}

TEST(ClockFileTest, oneBoot_sharesItsClockByConstruction) {
  const auto text = nlohmann::json::parse(clock_text(barriers_of(0, 0), {"a", "a"}));

  EXPECT_EQ(text.at("ranks").at(1).at("offset_us"), 0);
  EXPECT_EQ(text.at("ranks").at(1).at("boot_id"), "a");
  EXPECT_EQ(text.at("ranks").at(1).at("residual_us_p95"), 0);
}

TEST(ClockFileTest, oneRank_hasNoSamples) {
  std::vector<ClockNotes> one(1);
  one[0].readings.push_back({.monotonic_ns = 1, .realtime_ns = 2});

  const auto text = nlohmann::json::parse(clock_text(one, {"a"}));

  EXPECT_TRUE(text.at("ranks").at(0).at("samples").empty());
  EXPECT_EQ(text.at("ranks").at(0).at("pairs").at(0).at("realtime_ns"), 2);
}

TEST(ClockFileTest, deepSamples_areRefused) {
  const std::string text = R"({"ranks": [{"rank": 0, "samples": )" + core::nested_json() + "}]}";

  EXPECT_THROW(read_back(text), core::DataError);
}

}  // namespace
}  // namespace sidestream::launch

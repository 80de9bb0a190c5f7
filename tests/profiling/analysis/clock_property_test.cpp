// Offset and drift put into clocks on purpose come back, within the uncertainty that is published.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <random>

#include "profiling/analysis/align.hpp"
#include "profiling/trace/clock_bounds.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::analysis {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

struct Injected {
  std::uint64_t seed = 1;
  std::int64_t offset_ns = 100'000'000;
  double drift_ppm = 20;
  int collectives = 400;
  std::int64_t length_ns = 20 * kSecond;
  double jitter_ns = 2'000;  // ranks leave a collective that much apart
  double stragglers = 0.01;  // share of collectives that one rank leaves very late
};

// Ranks 0 and 1 of a run; rank 1's clock shows other times.
class InjectedRun {
 public:
  explicit InjectedRun(const Injected& injected) : injected_(injected), random_(injected.seed) {
    for (int rank = 0; rank < 2; ++rank) {
      trace::RankTimeline& timeline = set_.timelines.emplace_back();
      timeline.info.rank = rank;
      timeline.info.world_size = 2;
    }
    for (int i = 0; i < injected.collectives; ++i) add(i);
  }

  // What rank 1's clock shows at a moment of rank 0's.
  std::int64_t shown(std::int64_t true_ns) const {
    const double drift = injected_.drift_ppm * 1e-6 * static_cast<double>(true_ns - kStart);
    return true_ns + injected_.offset_ns + std::llround(drift);
  }

  // By how much the alignment is wrong beyond what is published, anywhere in the window; not above
  // 0 when all is well. Half a nanosecond is lost to rounding at each of three places.
  double excess_us(const trace::ClockModel& clock) const {
    double worst = -1e9;
    for (int i = 0; i <= 10; ++i) {
      const std::int64_t moment = kStart + injected_.length_ns / 10 * i;
      const std::int64_t error_ns = clock.of(1).to_common(shown(moment)) - moment;
      const auto away_s = static_cast<double>(shown(moment) - clock.of(1).origin_ns) / 1e9;
      const double published_us =
          clock.uncertainty_us.at(1) + clock.drift_uncertainty_ppm.at(1) * std::abs(away_s);
      worst = std::max(worst, std::abs(static_cast<double>(error_ns)) / 1000 - published_us);
    }
    return worst - 0.0015;
  }

  trace::TraceSet& set() { return set_; }
  const CollectiveMatches& matches() const { return matches_; }
  double gaussian(double width) { return std::normal_distribution<>(0, width)(random_); }

 private:
  void add(int i) {
    const std::int64_t moment = kStart + injected_.length_ns / injected_.collectives * i;
    const auto leaves = [&] {
      const bool late = std::uniform_real_distribution<>()(random_) < injected_.stragglers;
      return moment + std::llround(gaussian(injected_.jitter_ns)) + (late ? 5'000'000 : 0);
    };
    MatchedCollective one;
    one.kernel = "allreduce";
    // Both are inside before one of them leaves.
    const std::int64_t first = leaves(), second = leaves();
    const std::int64_t entered = std::min(first, second) - 1'000;
    one.parts = {{0, 0, 0, entered, first - entered},
                 {1, 1, 0, shown(entered), shown(second) - shown(entered)}};
    matches_.matched.push_back(one);
  }

  Injected injected_;
  std::mt19937_64 random_;
  trace::TraceSet set_;
  CollectiveMatches matches_;
};

TEST(ClockPropertyTest, from_collectives_alone) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    InjectedRun run({.seed = seed});
    align_clocks(run.set(), run.matches());
    const trace::ClockModel& clock = run.set().clock;

    EXPECT_EQ(clock.method, "collectives");
    EXPECT_LE(run.excess_us(clock), 0) << seed;
    EXPECT_NEAR(clock.of(1).drift_ppm, -20, clock.drift_uncertainty_ppm.at(1)) << seed;
    EXPECT_LE(clock.drift_uncertainty_ppm.at(1), 2) << seed;
    EXPECT_LE(clock.uncertainty_us.at(1), 15) << seed;
  }
}

TEST(ClockPropertyTest, any_offset_drift_jitter_and_number_of_collectives) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](double low, double high) {
      return std::uniform_real_distribution<>(low, high)(random);
    };
    const Injected injected{
        .seed = seed,
        .offset_ns = std::llround(between(-2e8, 2e8)),
        .drift_ppm = between(-50, 50),
        .collectives = static_cast<int>(between(1, 500)),
        .length_ns = std::llround(std::exp(between(std::log(1e7), std::log(1e11)))),
        .jitter_ns = std::exp(between(std::log(100), std::log(2e5))),
        .stragglers = between(0, 0.04)};
    InjectedRun run(injected);
    align_clocks(run.set(), run.matches());
    const trace::ClockModel& clock = run.set().clock;

    EXPECT_LE(run.excess_us(clock), 0)
        << seed << ": " << injected.collectives << " collectives, jitter " << injected.jitter_ns
        << " ns, drift " << injected.drift_ppm << " ppm, " << injected.length_ns << " ns";
  }
}

TEST(ClockPropertyTest, from_samples_refined_by_collectives) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    InjectedRun run({.seed = seed});
    trace::RankSamples& samples = run.set().samples.emplace()[1];
    for (int i = 0; i < 64; ++i) {  // half before the window, half behind it
      const std::int64_t moment = kStart + (i < 32 ? 0 : 20 * kSecond) + i * 10'000;
      samples.pairs.push_back(
          {run.shown(moment) + std::llround(std::min(30e3, std::abs(run.gaussian(15e3)))), moment});
    }
    samples.round_trip_ns = 60'000;
    align_clocks(run.set(), run.matches());
    const trace::ClockModel& clock = run.set().clock;

    EXPECT_EQ(clock.method, "samples+collectives") << seed;
    EXPECT_LE(run.excess_us(clock), 0) << seed;
    EXPECT_LE(clock.uncertainty_us.at(1), 12) << seed;  // 30 of the samples alone
  }
}

// Hosts of two ranks: the clock of the second is 70 ms ahead and 15 ppm fast, and its ranks differ
// in how well they were sampled.
TEST(ClockPropertyTest, ranks_of_one_host_have_one_clock) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    const auto noise_ns = [&](double width) {
      return std::llround(std::normal_distribution<>(0, width)(random));
    };
    const auto shown = [](int rank, std::int64_t moment) {
      const double drift = 15e-6 * static_cast<double>(moment - kStart);
      return rank < 2 ? moment : moment + 70'000'000 + std::llround(drift);
    };
    trace::TraceSet set;
    trace::ClockSamples& samples = set.samples.emplace();
    for (int rank = 0; rank < 4; ++rank) {
      set.timelines.emplace_back().info.rank = rank;
      samples[rank].boot_id = rank < 2 ? "one" : "two";
      samples[rank].round_trip_ns = 60'000;
      for (int i = 0; i < 64; ++i) {
        const std::int64_t moment = kStart + (i < 32 ? 0 : 20 * kSecond) + i * 10'000;
        samples[rank].pairs.push_back(
            {shown(rank, moment) + noise_ns(rank == 2 ? 2e3 : 12e3), moment});
      }
    }
    CollectiveMatches matches;
    for (int i = 0; i < 200; ++i) {
      const std::int64_t moment = kStart + i * kSecond / 10;
      MatchedCollective& one = matches.matched.emplace_back();
      one.kernel = "allreduce";
      for (int rank = 0; rank < 4; ++rank) {
        const std::int64_t end_ns = shown(rank, moment + noise_ns(2'000));
        one.parts.push_back({rank, static_cast<std::size_t>(rank), 0, end_ns - 50'000, 50'000});
      }
    }

    align_clocks(set, matches);

    const trace::ClockModel& clock = set.clock;
    EXPECT_EQ(clock.of(1).offset_ns, 0) << seed;
    EXPECT_EQ(clock.uncertainty_us.at(1), 0) << seed;
    for (const std::int64_t moment : {kStart, kStart + 20 * kSecond}) {
      const std::int64_t time_ns = shown(2, moment);
      EXPECT_EQ(clock.of(2).to_common(time_ns), clock.of(3).to_common(time_ns)) << seed;
      const auto away_s = static_cast<double>(time_ns - clock.of(2).origin_ns) / 1e9;
      const double error_us = static_cast<double>(clock.of(2).to_common(time_ns) - moment) / 1000;
      EXPECT_LE(std::abs(error_us), clock.uncertainty_us.at(2) + 0.01 +
                                        clock.drift_uncertainty_ppm.at(2) * std::abs(away_s))
          << seed;
    }
    EXPECT_EQ(clock.method, "samples+collectives") << seed;
    EXPECT_LE(clock.uncertainty_us.at(2), 12) << seed;  // 30 of the samples alone
  }
}

// Traces that were recorded on one host: its clock is the truth for both ranks.
struct Recorded {
  const char* folder;
  double uncertainty_us;  // at most
};

class RecordedClockTest : public ::testing::TestWithParam<Recorded> {
 protected:
  // Rank 1's clock is 100 ms ahead and 20 ppm fast, and there are no samples.
  void SetUp() override {
    const auto folder = std::filesystem::path(SIDESTREAM_TEST_DATA) / GetParam().folder;
    set_ = trace::load_traces(trace::find_traces({folder}));
    set_.samples.reset();
    matches_ = match_collectives(set_);
    ASSERT_FALSE(matches_.matched.empty());
    for (MatchedCollective& one : matches_.matched) {
      for (CollectivePart& part : one.parts) {
        if (part.rank != 1) continue;
        const std::int64_t end_ns = shown(part.end_ns());
        part.start_ns = shown(part.start_ns);
        part.duration_ns = end_ns - part.start_ns;
      }
    }
  }

  std::int64_t shown(std::int64_t true_ns) const {
    const std::int64_t first_ns = set_.timelines[0].start_ns(0);
    return true_ns + 100'000'000 + std::llround(20e-6 * static_cast<double>(true_ns - first_ns));
  }

  trace::TraceSet set_;
  CollectiveMatches matches_;
};

TEST_P(RecordedClockTest, offset_and_drift_come_back_within_a_useful_uncertainty) {
  align_clocks(set_, matches_);

  const trace::ClockModel& clock = set_.clock;
  EXPECT_EQ(clock.method, "collectives");
  EXPECT_LE(clock.uncertainty_us.at(1), GetParam().uncertainty_us);
  EXPECT_LE(clock.drift_uncertainty_ppm.at(1), 2 * trace::kMostDriftPpm);
  EXPECT_LE(std::abs(clock.of(1).drift_ppm + 20), clock.drift_uncertainty_ppm.at(1));
  // At the origin: a time of rank 1's clock, with the base of its file.
  const trace::RankTimeline& rank1 = set_.timelines[1];
  const std::int64_t base_ns = rank1.info.base_ns;
  std::int64_t low = clock.of(1).origin_ns - base_ns - 200'000'000, high = low + 400'000'000;
  while (high - low > 1) {  // the true time at which rank 1 showed the origin
    const std::int64_t middle = low + (high - low) / 2;
    (shown(middle) <= clock.of(1).origin_ns - base_ns ? low : high) = middle;
  }
  const std::int64_t error_ns = clock.of(1).to_common(clock.of(1).origin_ns) - (low + base_ns);
  EXPECT_LE(std::abs(static_cast<double>(error_ns)) / 1000, clock.uncertainty_us.at(1) + 0.01);
}

INSTANTIATE_TEST_SUITE_P(Traces, RecordedClockTest,
                         ::testing::Values(Recorded{"recorder_cpu_2ranks", 1'000},
                                           Recorded{"trainer_cpu_2ranks", 3'000}),
                         [](const auto& info) { return std::string(info.param.folder); });

// Ranks 0 and 1 share collectives, 1 and 2 share others; 3 shares none.
TEST(ClockTreeTest, a_rank_without_the_reference_goes_by_one_that_has_it) {
  trace::TraceSet set;
  for (int rank = 0; rank < 4; ++rank) {
    trace::RankTimeline& timeline = set.timelines.emplace_back();
    timeline.info.rank = rank;
  }
  constexpr std::array<std::int64_t, 4> kAhead = {0, 50'000'000, -30'000'000, 7};
  CollectiveMatches matches;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t moment = kStart + i * kSecond / 10;
    MatchedCollective one;
    one.kernel = "allreduce";
    const int first = i % 2;
    for (const int rank : {first, first + 1})
      one.parts.push_back({rank, static_cast<std::size_t>(rank), 0, moment + kAhead[rank], 10'000});
    matches.matched.push_back(one);
  }

  align_clocks(set, matches);

  for (const int rank : {1, 2}) {
    EXPECT_NEAR(static_cast<double>(set.clock.of(rank).offset_ns),
                static_cast<double>(-kAhead[rank]), 2000);
    EXPECT_LE(set.clock.uncertainty_us.at(rank), 25);
  }
  EXPECT_FALSE(set.clock.ranks.contains(3));
  ASSERT_EQ(set.warnings.size(), 2u);
  EXPECT_NE(set.warnings[1].find("ranks 3 "), std::string::npos) << set.warnings[1];
}

TEST(RanksApartTest, traces_of_other_days_are_told) {
  trace::TraceSet set;
  for (const std::int64_t base_ns :
       {std::int64_t{0}, 86'400 * kSecond, kSecond / 2, -9 * kSecond}) {
    trace::RankTimeline& timeline = set.timelines.emplace_back();
    timeline.info.rank = static_cast<int>(set.timelines.size()) - 1;
    timeline.info.base_ns = base_ns;
    timeline.add({.kind = trace::Kind::kHostRange, .start_ns = 0, .duration_ns = kSecond});
  }

  align_clocks(set, CollectiveMatches());

  ASSERT_EQ(set.warnings.size(), 2u);
  EXPECT_EQ(
      set.warnings[1],
      "the traces of ranks 1, 3 and that of rank 0 lie up to 86399 s apart: are they of one run?");
}

}  // namespace
}  // namespace sidestream::analysis

#include "profiling/record/system_sampler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "profiling/record/background_sampler.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::record {
namespace {

double value_of(const std::vector<SystemSample>& samples, const std::string& counter,
                const std::string& name) {
  for (const SystemSample& sample : samples) {
    if (sample.name != counter) continue;
    for (const auto& [key, value] : sample.values) {
      if (key == name) return value;
    }
  }
  ADD_FAILURE() << "no " << counter << ": " << name;
  return -1;
}

TEST(SystemSamplerTest, rates_areOfTheTimeBetween) {
  SystemTotals before, after;
  before.monotonic_ns = 1'000'000'000;
  before.threads[7] = {.name = "main", .run_ns = 100, .wait_ns = 0};
  before.machine_busy_s = 10;
  before.machine_total_s = 40;
  before.network_sent_bytes = 5;
  before.core_busy_s = {1, 2};
  before.disk_busy_s["sda"] = 3;
  after = before;
  after.monotonic_ns = 3'000'000'000;
  after.threads[7] = {.name = "main", .run_ns = 1'000'000'100, .wait_ns = 200'000'000};
  after.threads[8] = {.name = "ss-loader-0", .run_ns = 500'000'000, .wait_ns = 0};
  after.machine_busy_s = 11;
  after.machine_total_s = 44;
  after.core_busy_s = {2, 4.5};
  after.disk_busy_s["sda"] = 3.5;
  after.disk_busy_s["sdb"] = 9;  // new: since when is not known
  after.resident_bytes = 3 << 20;
  after.network_sent_bytes = 5 + (4 << 20);

  const auto samples = rates_between(before, after);

  EXPECT_DOUBLE_EQ(value_of(samples, "thread running [%]", "main 7"), 50);
  EXPECT_DOUBLE_EQ(value_of(samples, "thread running [%]", "ss-loader-0 8"), 25);
  EXPECT_DOUBLE_EQ(value_of(samples, "process cpu [%]", "running"), 75);
  EXPECT_DOUBLE_EQ(value_of(samples, "process cpu [%]", "waiting"), 10);
  EXPECT_DOUBLE_EQ(value_of(samples, "machine cpu [%]", "busy"), 25);
  EXPECT_DOUBLE_EQ(value_of(samples, "core busy [%]", "0"), 50);
  EXPECT_DOUBLE_EQ(value_of(samples, "core busy [%]", "1"), 100);
  EXPECT_DOUBLE_EQ(value_of(samples, "disk busy [%]", "sda"), 25);
  EXPECT_DOUBLE_EQ(value_of(samples, "memory [MiB]", "process"), 3);
  EXPECT_DOUBLE_EQ(value_of(samples, "network [MiB/s]", "sent"), 2);
  for (const SystemSample& sample : samples) EXPECT_EQ(sample.monotonic_ns, after.monotonic_ns);
}

TEST(SystemSamplerTest, withoutTime_thereAreNoRates) { EXPECT_TRUE(rates_between({}, {}).empty()); }

// Against the clock of the process: how much of the time a busy machine gives it is not known.
TEST(SystemSamplerTest, busyThread_isSeen) {
  constexpr double kBusyNs = 100e6;
  SystemSampler sampler("");
  const std::int64_t from_ns = monotonic_ns();
  const std::clock_t from = std::clock();
  const auto busy_ns = [&] {
    return static_cast<double>(std::clock() - from) * 1e9 / CLOCKS_PER_SEC;
  };
  while (busy_ns() < kBusyNs) {
  }

  const auto samples = sampler.sample();

  const double most = 100 * kBusyNs / static_cast<double>(monotonic_ns() - from_ns);
  EXPECT_GT(value_of(samples, "process cpu [%]", "running"), most * 0.8);
}

TEST(BackgroundSamplerTest, samples_areTakenOnceAndUpToATime) {
  BackgroundSampler sampler(200, "");
  SystemSamples first;
  for (int i = 0; i < 400 && first.kept.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    first = sampler.take(monotonic_ns());
  }

  ASSERT_FALSE(first.kept.empty());
  EXPECT_EQ(first.dropped, 0u);
  EXPECT_TRUE(sampler.take(first.kept.back().monotonic_ns).kept.empty());
}

TEST(BackgroundSamplerTest, withoutRoom_theNewestStayAndTheOthersAreCounted) {
  constexpr std::size_t kMost = 3;
  BackgroundSampler sampler(200, "", kMost);
  const std::int64_t from_ns = monotonic_ns();
  SystemSamples taken;
  for (int i = 0; i < 400 && taken.dropped == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    taken = sampler.take(from_ns + i * 10'000'000);
  }

  EXPECT_GT(taken.dropped, 0u);
  EXPECT_LE(taken.kept.size(), kMost);
}

TEST(NvmlTest, withoutTheLibrary_thereAreNoSamples) {
  Nvml nvml(0u, "libsidestream-has-no-such-library.so");

  EXPECT_FALSE(nvml.found());
  EXPECT_TRUE(nvml.sample().empty());
}

TEST(NvmlTest, energyAndReasons_areSampled) {
  Nvml nvml("0000:3B:00.0", SIDESTREAM_FAKE_NVML);
  ASSERT_TRUE(nvml.found());

  const auto first = nvml.sample();
  const auto second = nvml.sample();

  EXPECT_DOUBLE_EQ(value_of(first, "gpu energy [J]", "board"), 0);
  EXPECT_DOUBLE_EQ(value_of(second, "gpu energy [J]", "board"), 1.5);
  EXPECT_DOUBLE_EQ(value_of(first, "gpu held down", "by power or heat"), 1);
  EXPECT_DOUBLE_EQ(value_of(first, "gpu held down", "power cap"), 1);
  EXPECT_DOUBLE_EQ(value_of(first, "gpu held down", "heat, by hardware"), 0);
  EXPECT_DOUBLE_EQ(value_of(first, "gpu held down", "sync boost"), 1);
}

TEST(NvmlTest, libraryWithoutItsFunctions_isNotUsed) {
  Nvml nvml(0u, "libm.so.6");

  EXPECT_FALSE(nvml.found());
}

}  // namespace
}  // namespace sidestream::record

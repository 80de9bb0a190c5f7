// The way of batches to a device, with a fake driver that remembers what comes after what.
#include "launch/device/device_feed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "core/base/error.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "launch/device/device_memory.hpp"
#include "launch/device/gpu_peak.hpp"
#include "launch/device/late_values.hpp"
#include "launch/trainer/capture_window.hpp"
#include "tests/comm/device/fake_driver.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 8;

struct DeviceFeedTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  std::shared_ptr<data::SyntheticSource> source = std::make_shared<data::SyntheticSource>(100, 7);

  std::unique_ptr<data::Loader> loader(
      data::SlotAllocator allocator = data::SlotAllocator::heap()) const {
    return std::make_unique<data::Loader>(data::LoaderConfig{.batch_size = kBatch,
                                                             .sequence_length = kLength,
                                                             .workers = 1,
                                                             .max_held = DeviceFeed::kBatchesHeld,
                                                             .allocator = std::move(allocator)},
                                          source);
  }
  std::unique_ptr<DeviceFeed> feed(data::Loader& from) {
    return std::make_unique<DeviceFeed>(
        from, driver, FeedConfig{.batch_size = kBatch, .sequence_length = kLength},
        [this] { return compute; });
  }
};

bool same(const torch::Tensor& tensor, std::span<const std::int64_t> tokens) {
  return static_cast<std::size_t>(tensor.numel()) == tokens.size() &&
         std::memcmp(tensor.const_data_ptr(), tokens.data(), tokens.size_bytes()) == 0;
}

TEST_F(DeviceFeedTest, batches_are_those_of_the_loader_in_order) {
  const auto fed = loader();
  const auto expected = loader();
  const auto batches = feed(*fed);

  for (int i = 0; i < 10; ++i) {
    const DeviceBatch batch = batches->next();
    const data::Batch reference = expected->next();
    EXPECT_TRUE(same(batch.inputs_bt, reference.inputs())) << i;
    EXPECT_TRUE(same(batch.targets_bt, reference.targets())) << i;
    EXPECT_EQ(batch.epoch, reference.epoch());
    batches->consumed();
  }
}

TEST_F(DeviceFeedTest, slots_are_fixed_and_take_turns) {
  const auto fed = loader();
  const auto batches = feed(*fed);
  std::vector<const void*> places;

  for (int i = 0; i < 4; ++i) {
    places.push_back(batches->next().inputs_bt.const_data_ptr());
    batches->consumed();
  }

  EXPECT_NE(places[0], places[1]);
  EXPECT_EQ(places[0], places[2]);
  EXPECT_EQ(places[1], places[3]);
}

TEST_F(DeviceFeedTest, compute_comes_after_its_copy_and_the_next_copy_does_not_wait_for_it) {
  const auto fed = loader();
  const auto batches = feed(*fed);

  batches->next();
  driver->enqueue("step 1", compute);
  batches->consumed();  // copies batch 2
  driver->enqueue("after step 1", compute);
  batches->next();
  driver->enqueue("step 2", compute);

  EXPECT_TRUE(driver->is_after("step 1", "copy"));
  EXPECT_TRUE(driver->is_after("step 2", "copy"));
  EXPECT_FALSE(driver->is_after("after step 1", "copy"));  // batch 2 is copied beside step 1
  EXPECT_NE(driver->stream_of("copy"), compute);
}

TEST_F(DeviceFeedTest, slot_is_filled_again_only_behind_what_reads_it) {
  const auto fed = loader();
  const auto batches = feed(*fed);
  batches->next();
  driver->enqueue("step 1", compute);
  batches->consumed();
  batches->next();
  const std::size_t copies = driver->count_of("copy");
  batches->consumed();  // copies batch 3 into the slot of batch 1
  ASSERT_GT(driver->count_of("copy"), copies);
  batches->next();
  driver->enqueue("step 3", compute);

  EXPECT_TRUE(driver->is_after("step 3", "step 1"));
}

TEST_F(DeviceFeedTest, host_does_not_wait_for_a_device_that_is_two_batches_behind) {
  const auto fed = loader();
  const auto batches = feed(*fed);
  driver->hold();  // no copy is ever done

  for (int i = 0; i < 2; ++i) {
    batches->next();
    batches->consumed();
  }

  EXPECT_EQ(driver->synchronizations, 0);
  driver->release();
}

TEST_F(DeviceFeedTest, host_memory_is_kept_until_its_copy_is_done) {
  const auto fed = loader();
  const auto batches = feed(*fed);
  driver->hold();
  std::thread device([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    driver->release();
  });
  const auto start = std::chrono::steady_clock::now();

  for (int i = 0; i < 6; ++i) {  // more than the loader lends at a time
    batches->next();
    batches->consumed();
  }
  device.join();

  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

// --pin-memory off: a driver that copies before it returns.
TEST_F(DeviceFeedTest, pageable_batches_are_the_same_and_their_copies_are_paid_by_the_host) {
  struct SlowCopies final : comm::cuda::FakeDriver {
    void copy(void* to, const void* from, std::size_t bytes, comm::Stream stream) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      FakeDriver::copy(to, from, bytes, stream);
    }
  };
  driver = std::make_shared<SlowCopies>();
  compute = driver->create_stream(comm::cuda::Priority::kNormal);
  const auto fed = loader();
  const auto expected = loader();
  const auto batches = feed(*fed);

  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same(batches->next().inputs_bt, expected->next().inputs()));
    batches->consumed();
  }

  EXPECT_EQ(driver->pinned_alive, 0u);
  EXPECT_GE(batches->reader_cost_ns(), 8u * 5'000'000u);  // two copies each of four batches
}

TEST_F(DeviceFeedTest, batches_lie_in_pinned_memory_when_the_loader_is_told_so) {
  {
    const auto fed = loader(pinned_slots(driver));
    EXPECT_EQ(driver->pinned_alive, 1u);
    feed(*fed)->next();
  }
  EXPECT_EQ(driver->pinned_alive, 0u);
}

class FullDriver final : public comm::cuda::FakeDriver {
 public:
  void* allocate_pinned(std::size_t) override { throw core::MemoryError("8 KiB wanted"); }
};

TEST_F(DeviceFeedTest, batches_without_pinned_memory_name_the_flag) {
  driver = std::make_shared<FullDriver>();
  try {
    loader(pinned_slots(driver));
    FAIL() << "it has got memory";
  } catch (const core::MemoryError& error) {
    EXPECT_EQ(std::string(error.what()),
              "batches: 8 KiB wanted: --pin-memory off needs none, a smaller --prefetch less");
  }
}

// They are pinned whatever --pin-memory says.
TEST_F(DeviceFeedTest, late_values_without_pinned_memory_name_no_flag) {
  try {
    LateValues(std::make_shared<FullDriver>(), [this] { return compute; });
    FAIL() << "it has got memory";
  } catch (const core::MemoryError& error) {
    EXPECT_EQ(std::string(error.what()), "8 KiB wanted");
  }
}

TEST_F(DeviceFeedTest, late_values_arrive_without_a_synchronization) {
  LateValues late(driver, [this] { return compute; });
  late.ask(0, torch::tensor({2.5}, torch::kFloat64));
  late.ask(1, torch::tensor({3.0, 4.0, 5.0}, torch::kFloat64));
  driver->hold();
  late.seal();
  int checks = 0;

  const auto& values = late.read([&] {
    if (++checks == 3) driver->release();
  });

  EXPECT_EQ(values[0], 2.5);
  EXPECT_EQ(values[3], 5.0);
  EXPECT_EQ(checks, 3);
  EXPECT_EQ(driver->synchronizations, 0);
}

TEST(GpuPeakTest, peak_is_that_of_the_datasheet_or_nothing) {
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA H200", Precision::kBf16), 989e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA H100 80GB HBM3", Precision::kTf32), 494.5e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA H100 PCIe", Precision::kBf16), 756e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA A100-SXM4-80GB", Precision::kFp32), 19.5e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA L40S", Precision::kBf16), 362e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA L4", Precision::kBf16), 121e12);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA L40", Precision::kBf16), std::nullopt);
  EXPECT_EQ(gpu_peak_flops_per_s("NVIDIA GeForce RTX 4090", Precision::kFp32), 82.6e12);
  EXPECT_EQ(gpu_peak_flops_per_s("Fake 100", Precision::kBf16), std::nullopt);
  for (const char* part : {"NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                           "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D"})
    EXPECT_EQ(gpu_peak_flops_per_s(part, Precision::kBf16), std::nullopt) << part;
}

TEST(DeviceMemoryTest, peak_has_what_lies_outside_of_the_pool) {
  EXPECT_EQ(device_memory_peak({.peak_allocated_bytes = 70, .reserved_bytes = 100}, 130), 100);
  EXPECT_EQ(device_memory_peak({.peak_allocated_bytes = 70, .reserved_bytes = 100}, 90), 70);
}

TEST(CaptureWindowTest, cuda_profiler_is_started_and_stopped_once_around_the_steps) {
  const auto driver = std::make_shared<comm::cuda::FakeDriver>();
  CaptureWindow window("3:5", driver);
  std::vector<int> recorded;

  for (int step = 1; step <= 8; ++step) {
    window.before(step);
    if (driver->profiler_starts > driver->profiler_stops) recorded.push_back(step);
    window.after(step);
  }

  EXPECT_EQ(recorded, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(driver->profiler_starts, 1);
  EXPECT_EQ(driver->profiler_stops, 1);
}

TEST(CaptureWindowTest, run_that_starts_inside_records_the_rest_and_one_that_ends_there_stops) {
  const auto driver = std::make_shared<comm::cuda::FakeDriver>();
  {
    CaptureWindow window("3:9", driver);
    window.before(6);  // resumed after step 5
    EXPECT_EQ(driver->profiler_starts, 1);
    window.after(6);
  }
  EXPECT_EQ(driver->profiler_stops, 1);
}

TEST(CaptureWindowTest, text_names_first_and_last_step) {
  EXPECT_EQ(CaptureWindow("").first_step(), 0);
  EXPECT_EQ(CaptureWindow("20:30").first_step(), 20);
  EXPECT_EQ(CaptureWindow("20:30").last_step(), 30);
  EXPECT_EQ(CaptureWindow("4").last_step(), 4);
  for (const char* bad : {"0:3", "5:4", "a:b", "3:", ":3", "3-4", "1:2x"}) {
    EXPECT_THROW(CaptureWindow{bad}, core::ConfigError) << bad;
  }
}

}  // namespace
}  // namespace sidestream::launch

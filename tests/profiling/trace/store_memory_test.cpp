// What the store of a small file takes: a run of many ranks has thousands of them at once. A
// program of its own: it replaces operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "profiling/trace/rank_timeline.hpp"

namespace {

std::atomic<std::size_t> asked_bytes{0};

}  // namespace

void* operator new(std::size_t size) {
  asked_bytes += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sidestream::trace {
namespace {

// Rows of every column that a file with collectives fills.
void add_rows(std::size_t rows, RankTimeline& timeline) {
  const std::uint32_t track = timeline.track("1", "1");
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint32_t collective =
        timeline.add_detail(CollectiveDetail{.bytes = 8, .bucket = static_cast<std::int64_t>(row)});
    HostDetail host;
    host.collective = collective;
    const std::string name = "range " + std::to_string(row);
    timeline.add({Kind::kHostRange, name, 0, 1, track}, timeline.add_detail(host));
    DeviceDetail device;
    device.correlation = row;
    timeline.add({Kind::kKernel, name, 0, 1, track}, timeline.add_detail(device));
    timeline.add({Kind::kMemory, name, 0, 1, track}, timeline.add_detail(MemoryDetail{}));
    timeline.add({Kind::kRuntime, name, 0, 1, track}, timeline.add_correlation(row));
    timeline.add_counter({});
  }
}

std::size_t bytes_for(std::size_t rows) {
  const std::size_t before = asked_bytes;
  RankTimeline timeline;
  add_rows(rows, timeline);
  EXPECT_EQ(timeline.size(), 4 * rows);
  return asked_bytes - before;
}

TEST(StoreMemoryTest, a_few_rows_take_a_few_kilobytes) { EXPECT_LT(bytes_for(4), 16u << 10); }

// Else the one above would hold of a store that keeps nothing.
TEST(StoreMemoryTest, many_rows_take_their_room) {
  EXPECT_GT(bytes_for(10'000), 10'000 * (sizeof(CollectiveDetail) + sizeof(MemoryDetail)));
}

}  // namespace
}  // namespace sidestream::trace

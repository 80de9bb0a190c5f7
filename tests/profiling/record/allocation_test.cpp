// What NVTX tells asks for no memory. A program of its own: it replaces operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "profiling/record/recorder.hpp"

namespace {

std::atomic<std::int64_t> allocations{0};

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sidestream::record {
namespace {

using ranges::Phase;

void tell_a_step(Recorder& recorder, NameId number) {
  const ranges::CollectivePayload payload{.bucket = 3, .sequence = 41, .bytes = 1 << 20};
  recorder.push(kStepBit | number, nullptr);
  recorder.push(id_of(Phase::kForward), nullptr);
  const std::uint64_t in_flight = recorder.start(id_of(Phase::kAllReduce), &payload);
  recorder.push(id_of(Phase::kAllReduce), &payload);
  recorder.pop();
  recorder.end(in_flight);
  recorder.pop();
  recorder.pop();
}

// More than a ring has room for: what is dropped costs no memory either.
TEST(RecorderAllocationTest, rangesAfterTheFirst_askForNoMemory) {
  Recorder recorder({.ranges_per_thread = 1 << 12});
  for (const Keeping keeping : {Keeping::kOff, Keeping::kOn}) {
    recorder.keep(keeping);
    tell_a_step(recorder, 1);
    const std::int64_t before = allocations;

    for (NameId step = 2; step < 10'000; ++step) tell_a_step(recorder, step);

    EXPECT_EQ(allocations - before, 0);
  }
  EXPECT_GT(recorder.take().dropped, 0u);
}

// Else the one above would hold of a recorder that keeps nothing.
TEST(RecorderAllocationTest, theFirstRangeOfAThread_asksForItsRing) {
  Recorder recorder;
  recorder.keep(Keeping::kOn);
  const std::int64_t before = allocations;

  tell_a_step(recorder, 1);

  EXPECT_GT(allocations - before, 0);
}

}  // namespace
}  // namespace sidestream::record

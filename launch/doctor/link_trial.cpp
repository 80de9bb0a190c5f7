#include "launch/doctor/link_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/cuda/driver.hpp"
#include "comm/cuda/handles.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch::doctor {
namespace {

using Numbers = std::vector<std::int64_t>;

// To or from where the communicator's buffers live.
void copy(const comm::Communicator& communicator, void* to, const void* from, std::size_t bytes) {
  if (!communicator.device()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto driver = comm::cuda::make_driver();
  const comm::cuda::OwnedStream stream(driver, comm::cuda::Priority::kNormal);
  driver->copy(to, from, bytes, stream.get());
  driver->synchronize(stream.get());
}

// The numbers are different for each rank and each place: a rank that is left out, or counted
// twice, shows.
std::string sum_problem(comm::Communicator& communicator) {
  constexpr std::size_t kCount = 4096;
  constexpr std::size_t kBytes = kCount * sizeof(std::int64_t);
  const std::int64_t ranks = communicator.size();
  Numbers numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    numbers[i] = (std::int64_t{1} << (communicator.rank() % 32)) + static_cast<std::int64_t>(i);
  const comm::Allocation buffer = communicator.allocate(kBytes);
  copy(communicator, buffer.data, numbers.data(), kBytes);
  communicator.all_reduce(buffer.data, kCount, core::DType::kInt64, comm::waited_for()).wait();
  copy(communicator, numbers.data(), buffer.data, kBytes);
  std::int64_t of_ranks = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) of_ranks += std::int64_t{1} << (rank % 32);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int64_t expected = of_ranks + ranks * static_cast<std::int64_t>(i);
    if (numbers[i] != expected)
      return fmt::format("the sum of all ranks is wrong at element {}: {} instead of {}", i,
                         numbers[i], expected);
  }
  return "";
}

double median_barrier_s(comm::Communicator& communicator) {
  constexpr int kTries = 33;
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = Clock::now();
    communicator.barrier();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + kTries / 2, times.end());
  return times[kTries / 2];
}

}  // namespace

LinkFacts try_link(comm::Communicator& communicator, double seconds) {
  LinkFacts facts{.backend = std::string(communicator.backend_name())};
  const auto problems = communicator.exchange(sum_problem(communicator));
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    facts.problem = communicator.topology().place_of(rank) + ": " + problems[rank];
    return facts;
  }
  facts.barrier_s = median_barrier_s(communicator);
  if (communicator.size() > 1)
    facts.bus_bytes_per_s = measure_link(communicator, {.seconds = seconds}).bus_bytes_per_s();
  return facts;
}

}  // namespace sidestream::launch::doctor

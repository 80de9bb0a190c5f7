#include "launch/doctor/patient_probe.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/worker_thread.hpp"

namespace sidestream::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::seconds kAfterStop{1};

// Of both threads: the one that waits may be gone when the other one comes back.
struct Shared {
  std::atomic<bool> give_up{false};
  std::mutex mutex;
  std::condition_variable done;
  std::optional<StorageFacts> facts;  // under the mutex
};

StorageFacts facts_of(const Probe& probe, const std::atomic<bool>& give_up) {
  try {
    return probe([&give_up] { return give_up.load(); });
  } catch (const std::exception& error) {
    return {.probed = true, .problem = error.what()};
  }
}

}  // namespace

StorageFacts probe_with_patience(const std::filesystem::path& folder, Probe probe,
                                 const std::function<bool()>& stop, const ProbePatience& patience) {
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, probe = std::move(probe)] {
    core::become_worker_thread("ss-probe");
    StorageFacts facts = facts_of(probe, shared->give_up);
    const std::lock_guard lock(shared->mutex);
    shared->facts = std::move(facts);
    shared->done.notify_all();
  }).detach();
  const Clock::time_point begin = Clock::now();
  Clock::time_point end = begin + patience.silent;
  std::unique_lock lock(shared->mutex);
  while (!shared->facts && Clock::now() < end) {
    shared->done.wait_for(lock, kBetweenLooks);
    if (stop()) end = std::min(end, Clock::now() + kAfterStop);
    shared->give_up = stop() || Clock::now() - begin > patience.slow;
  }
  if (shared->facts) return *std::move(shared->facts);
  return {.probed = true, .folder = folder.string(), .answered = false};
}

}  // namespace sidestream::launch::doctor

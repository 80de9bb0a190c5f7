#include "profiling/advice/occupancy_limiter.hpp"

#include <algorithm>
#include <array>

namespace sidestream::advice {
namespace {

// What one multiprocessor holds at most (CUDA C++ Programming Guide, technical specifications).
struct Multiprocessor {
  int compute_capability;
  double threads, blocks;
};
constexpr std::array<Multiprocessor, 11> kMultiprocessors = {{{70, 2048, 32},
                                                              {75, 1024, 16},
                                                              {80, 2048, 32},
                                                              {86, 1536, 16},
                                                              {87, 1536, 16},
                                                              {89, 1536, 24},
                                                              {90, 2048, 32},
                                                              {100, 2048, 32},
                                                              {103, 2048, 32},
                                                              {120, 1536, 24},
                                                              {121, 1536, 24}}};
constexpr double kRegisters = 65536;  // of all of them

const Multiprocessor* multiprocessor_of(std::optional<int> compute_capability) {
  const auto* found =
      std::find_if(kMultiprocessors.begin(), kMultiprocessors.end(), [&](const auto& one) {
        return compute_capability && one.compute_capability == *compute_capability;
      });
  return found == kMultiprocessors.end() ? nullptr : found;
}

}  // namespace

// Shared memory is left for last: how much of it there is depends on how the kernel divides it with
// the cache.
std::string occupancy_limiter(const trace::DeviceDetail& kernel,
                              std::optional<int> compute_capability) {
  const Multiprocessor* device = multiprocessor_of(compute_capability);
  const double threads = static_cast<double>(kernel.block[0]) * kernel.block[1] * kernel.block[2];
  if (device == nullptr || threads <= 0 || kernel.registers_per_thread == 0) return "";
  const double by_registers = kRegisters / (kernel.registers_per_thread * threads);
  const double by_threads = device->threads / threads;
  if (by_registers < by_threads && by_registers < device->blocks) return "registers";
  if (device->blocks < by_threads) return "block size";
  constexpr std::uint32_t kMuchSharedMemory = 48 << 10;
  return kernel.shared_memory_bytes > kMuchSharedMemory ? "shared memory" : "too few blocks";
}

}  // namespace sidestream::advice

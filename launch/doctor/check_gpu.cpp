#include <fmt/format.h>

#include <algorithm>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

using comm::DeviceWish;

std::vector<comm::DeviceFinding> devices_of(const JobFacts& job) {
  std::vector<comm::DeviceFinding> devices;
  for (const RankFacts& rank : job.ranks) devices.push_back(rank.gpu.device);
  return devices;
}

Finding usable(const JobFacts& job) {
  const comm::DeviceFinding& gpu = job.ranks.front().gpu.device;
  return {.name = "gpu",
          .found = fmt::format("{}{}, {}", job.ranks.size() > 1 ? "one a rank: " : "", gpu.name,
                               gpu.version)};
}

// There is hardware, and nothing to drive it with: most often what a new machine lacks.
Finding without_driver(const RankFacts& rank) {
  const bool lacks_driver = rank.gpu.driver.empty();
  return {.name = "gpu",
          .level = Level::kWarning,
          .found = fmt::format("{} NVIDIA GPU(s) on the PCI bus, and none can be used: {}",
                               rank.gpu.on_bus, rank.gpu.device.problem),
          .expected = "a GPU for each rank",
          .remedy = lacks_driver
                        ? "install NVIDIA's driver (nvidia-smi shows when it works; in a "
                          "container, start it with --gpus all), or say --device cpu"
                        : "a build with CUDA, and a driver that is new enough for it; or say "
                          "--device cpu"};
}

Finding without_gpu(const RankFacts& rank) {
  return {.name = "gpu",
          .level = Level::kNote,
          .found = "no GPU is used: " + rank.gpu.device.problem,
          .expected = "a GPU for each rank, or training on the processor",
          .remedy = "nothing to do on a machine without GPUs"};
}

}  // namespace

// As `train` decides, and with its words.
std::optional<Finding> check_gpu(const JobFacts& job) {
  if (job.wish == DeviceWish::kCpu) return std::nullopt;
  const comm::DeviceDecision decision =
      comm::decide_device(job.wish, devices_of(job), job.topology, comm::GpuSharing::kRefused);
  if (!decision.refusal.empty())
    return Finding{.name = "gpu",
                   .level = Level::kError,
                   .found = decision.refusal,
                   .expected = "a GPU for each rank, none shared",
                   .remedy =
                       "nvidia-smi shows what the driver sees; start one rank a GPU, or say "
                       "--device cpu"};
  if (!decision.warnings.empty())
    return Finding{.name = "gpu",
                   .level = Level::kWarning,
                   .found = decision.warnings.front(),
                   .expected = "a GPU of the same kind for each rank",
                   .remedy =
                       "choose hosts with equal GPUs (--hosts), update the driver, or say "
                       "--device cpu"};
  if (decision.on_gpu) return usable(job);
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) {
    return rank.gpu.on_bus > 0 ? without_driver(rank) : without_gpu(rank);
  });
}

// Somebody else's process on the GPU, or one that was left behind.
std::optional<Finding> check_gpu_memory(const JobFacts& job) {
  const bool all_usable =
      std::all_of(job.ranks.begin(), job.ranks.end(),
                  [](const RankFacts& rank) { return rank.gpu.device.usable(); });
  if (job.wish == DeviceWish::kCpu || !all_usable) return std::nullopt;
  return worst_over(job, Subject::kRank, [&job](const RankFacts& rank) -> Finding {
    constexpr double kShareOfAnIdleGpu = 0.9;
    const comm::cuda::DeviceMemory& memory = rank.gpu.device.memory;
    const auto need = static_cast<std::size_t>(job.need.rank_bytes);
    Finding finding{.name = "gpu-memory",
                    .found = fmt::format(
                        "{} of {} free", bytes_text(static_cast<std::int64_t>(memory.free_bytes)),
                        bytes_text(static_cast<std::int64_t>(memory.total_bytes)))};
    if (comm::memory_shortage(memory, need)) {
      finding.level = Level::kWarning;
      finding.expected = fmt::format("room for {}: {} and activations", job.need.model,
                                     bytes_text(job.need.rank_bytes));
      finding.remedy = "nvidia-smi names the processes that hold it; or take a smaller --model";
    } else if (static_cast<double>(memory.free_bytes) <
               kShareOfAnIdleGpu * static_cast<double>(memory.total_bytes)) {
      finding.level = Level::kWarning;
      finding.expected = "a GPU that nobody else uses: nine tenths free";
      finding.remedy =
          "nvidia-smi names the processes that hold it: end those that were left "
          "behind";
    }
    return finding;
  });
}

std::optional<Finding> check_gpu_clocks(const JobFacts& job) {
  if (!job.ranks.front().gpu.device.usable()) return std::nullopt;
  return worst_over(job, Subject::kRank, [](const RankFacts& rank) -> Finding {
    if (rank.gpu.held_down.empty())
      return {.name = "gpu-clocks", .found = "nothing holds the GPU's clocks down"};
    return {.name = "gpu-clocks",
            .level = Level::kWarning,
            .found = "the GPU's clocks are held down: " + rank.gpu.held_down,
            .expected = "full clocks",
            .remedy = "look at cooling and power limit (nvidia-smi -q -d PERFORMANCE,POWER)"};
  });
}

}  // namespace sidestream::launch::doctor

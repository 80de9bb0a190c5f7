#include "comm/device/device_choice.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

std::string visible_devices_text() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : std::string(" (CUDA_VISIBLE_DEVICES is '") + visible + "')";
}

// Whether CUDA_VISIBLE_DEVICES names devices; an empty list is how people say that there shall be
// none.
enum class Naming { kNotSet, kNone, kSome };
Naming naming_of_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return Naming::kNotSet;
  return *visible == '\0' ? Naming::kNone : Naming::kSome;
}

std::vector<std::size_t> ranks_without(std::span<const DeviceFinding> by_rank) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank].usable()) ranks.push_back(rank);
  }
  return ranks;
}

// Of ranks that would share one GPU; empty when none do.
std::string sharing_text(std::span<const DeviceFinding> by_rank, const Topology& topology) {
  std::map<std::string, std::vector<std::size_t>> ranks_by_gpu;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    ranks_by_gpu[topology.hosts.at(rank) + " " + by_rank[rank].uuid].push_back(rank);
  }
  for (const auto& [gpu, ranks] : ranks_by_gpu) {
    if (ranks.size() == 1) continue;
    const DeviceFinding& first = by_rank[ranks.front()];
    return "ranks " + std::to_string(ranks[0]) + " and " + std::to_string(ranks[1]) + " on " +
           topology.hosts.at(ranks[0]) + " would share GPU " + std::to_string(first.index) + " (" +
           first.name + "), of " + std::to_string(first.count) + " that they see" +
           visible_devices_text() + ": start one rank a GPU (-np), or say --device cpu";
  }
  return {};
}

std::optional<std::string> mixed_models(std::span<const DeviceFinding> by_rank) {
  std::map<std::string, std::string> ranks_by_model;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::string& ranks = ranks_by_model[by_rank[rank].name];
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (ranks_by_model.size() < 2) return std::nullopt;
  std::string text = "the ranks have different GPUs, and the slowest sets the pace:";
  for (const auto& [model, ranks] : ranks_by_model) {
    text += (text.ends_with(':') ? " " : "; ") + model + " on rank " + ranks;
  }
  return text;
}

DeviceDecision without_gpus(DeviceWish wish, std::span<const DeviceFinding> by_rank,
                            const Topology& topology, const std::vector<std::size_t>& without) {
  const std::string first = topology.place_of(without.front()) +
                            " has no usable GPU: " + by_rank[without.front()].problem;
  if (wish == DeviceWish::kCuda) {
    return {.refusal = "--device cuda or --backend nccl: " + first +
                       ". Say --device cpu, and no --backend nccl, to train on the processor"};
  }
  if (without.size() < by_rank.size()) {
    return {.refusal = first +
                       ", but other ranks have one: start ranks only where GPUs are "
                       "(--hosts), or say --device cpu"};
  }
  if (by_rank[without.front()].named_in_vain) {
    return {.refusal = first + ": name a GPU that is there, or say --device cpu"};
  }
  if (!by_rank[0].expected) return {};  // a machine without GPUs: nothing to warn about
  return {.warnings = {"no GPU is used: " + by_rank[0].problem +
                       "; training on the processor (--device cpu says so without this line)"}};
}

}  // namespace

std::string DeviceFinding::to_text() const {
  std::ostringstream text;
  text << expected << ' ' << named_in_vain << ' ' << index << ' ' << count << ' '
       << memory.free_bytes << ' ' << memory.total_bytes << '\n'
       << problem << '\n'
       << name << '\n'
       << uuid << '\n'
       << pci_bus << '\n'
       << version << '\n';
  return text.str();
}

DeviceFinding DeviceFinding::from_text(const std::string& text) {
  std::istringstream stream(text);
  DeviceFinding finding;
  std::string numbers;
  std::getline(stream, numbers);
  std::istringstream(numbers) >> finding.expected >> finding.named_in_vain >> finding.index >>
      finding.count >> finding.memory.free_bytes >> finding.memory.total_bytes;
  for (std::string* line :
       {&finding.problem, &finding.name, &finding.uuid, &finding.pci_bus, &finding.version}) {
    if (!std::getline(stream, *line)) throw core::Error("a rank said nothing about its GPU");
  }
  return finding;
}

DeviceFinding find_device(cuda::Driver& driver, int local_rank) {
  DeviceFinding finding;
  const cuda::DeviceCount devices = driver.device_count();
  if (devices.count == 0) {
    finding.problem = devices.problem + visible_devices_text();
    finding.expected = devices.expected && naming_of_devices() != Naming::kNone;
    finding.named_in_vain = devices.none_visible && naming_of_devices() == Naming::kSome;
    return finding;
  }
  finding.count = devices.count;
  finding.index = local_rank % devices.count;
  try {
    driver.set_device(finding.index);
    finding.memory = driver.memory();  // opens the device: refused here if another process owns it
    const cuda::DeviceProperties properties = driver.properties(finding.index);
    finding.name = properties.name;
    finding.uuid = properties.uuid;
    finding.pci_bus = properties.pci_bus;
    finding.version = properties.version;
  } catch (const std::exception& error) {
    finding.problem = "GPU " + std::to_string(finding.index) + " cannot be used: " + error.what();
    std::replace(finding.problem.begin(), finding.problem.end(), '\n', ' ');
  }
  return finding;
}

DeviceDecision decide_device(DeviceWish wish, std::span<const DeviceFinding> by_rank,
                             const Topology& topology, GpuSharing sharing) {
  if (wish == DeviceWish::kCpu) return {};
  if (const auto without = ranks_without(by_rank); !without.empty()) {
    return without_gpus(wish, by_rank, topology, without);
  }
  if (sharing == GpuSharing::kRefused) {
    if (std::string shared = sharing_text(by_rank, topology); !shared.empty()) {
      return {.refusal = std::move(shared)};
    }
  }
  DeviceDecision decision{.on_gpu = true};
  if (auto mixed = mixed_models(by_rank)) decision.warnings.push_back(std::move(*mixed));
  return decision;
}

std::optional<std::string> memory_shortage(const cuda::DeviceMemory& memory,
                                           std::size_t needed_bytes) {
  if (needed_bytes + kLibraryBytes <= memory.free_bytes) return std::nullopt;
  return "GPU memory is short: weights, gradients and moments need " +
         std::to_string(needed_bytes >> 20) + " MiB and some " +
         std::to_string(kLibraryBytes >> 20) + " MiB of libraries, " +
         std::to_string(memory.free_bytes >> 20) + " of " +
         std::to_string(memory.total_bytes >> 20) +
         " MiB are free: another process may be using it (nvidia-smi names it); --zero 1 "
         "and --optimizer-state-dtype bf16 take less, or a smaller --model";
}

}  // namespace sidestream::comm

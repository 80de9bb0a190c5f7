#include "launch/doctor/rank_reading.hpp"

#include <ATen/Version.h>
#include <torch/version.h>

#include "comm/device/device_factory.hpp"
#include "comm/device/nccl_finding.hpp"
#include "core/base/digest.hpp"
#include "core/base/processors.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/doctor/system_files.hpp"
#include "launch/process/build_summary.hpp"
#include "launch/process/tuning.hpp"
#include "profiling/record/nvlinks.hpp"
#include "profiling/record/nvml.hpp"

namespace sidestream::launch::doctor {
namespace {

// LibTorch has no call for it, but tells with what it was built.
std::string version_of_loaded_torch() {
  const std::string settings = at::show_config();
  const std::string key = "TORCH_VERSION=";
  const std::size_t begin = settings.find(key);
  if (begin == std::string::npos) return "";
  const std::size_t start = begin + key.size();
  return settings.substr(start, settings.find_first_of(",\n ", start) - start);
}

// A file that is replaced while it runs is still the same program for its rank: /proc has it.
ProgramFacts read_program(const comm::Topology& topology) {
  return {.version = std::string(version_text()),
          .sha256 = topology.size > 1 ? core::sha256_hex_of_file("/proc/self/exe") : "",
          .built_cuda = std::string(built_cuda_version()),
          .built_torch = TORCH_VERSION,
          .torch = version_of_loaded_torch()};
}

NcclFacts read_nccl() {
  const comm::NcclFinding finding =
      comm::find_nccl(comm::DeviceLibraries::of_this_build().load_nccl);
  NcclFacts facts{.problem = finding.problem};
  if (finding.api) {
    facts.built = comm::nccl::version_text(finding.api->built_version());
    facts.loaded = comm::nccl::version_text(finding.api->runtime_version());
  }
  return facts;
}

ProcessorFacts read_all_of_processor() {
  ProcessorFacts facts = read_processor();
  facts.name = processor_name();
  facts.capability = at::get_cpu_capability();
  facts.machine = comm::Machine::read();
  facts.allowed = core::allowed_processors();
  return facts;
}

std::string held_down_text(const comm::DeviceFinding& device) {
  if (!device.usable()) return "";
  std::string text;
  for (const record::SystemSample& sample : record::Nvml(device.pci_bus).sample()) {
    if (sample.name != "gpu held down") continue;
    for (const auto& [reason, is_set] : sample.values) {
      if (is_set != 0 && reason != "by power or heat") text += (text.empty() ? "" : ", ") + reason;
    }
  }
  return text;
}

GpuFacts read_all_of_gpu(const comm::DeviceFinding& device) {
  GpuFacts facts = read_gpus();
  facts.device = device;
  facts.held_down = held_down_text(device);
  if (device.usable()) facts.links = record::read_nvlinks(device.pci_bus);
  return facts;
}

}  // namespace

RankFacts read_rank(const comm::DeviceFinding& device, const comm::Topology& topology) {
  return {.host = topology.node,
          .program = read_program(topology),
          .mpi = comm::MpiLibrary::read(),
          .mpirun = is_in_path("mpirun"),
          .nccl = read_nccl(),
          .processor = read_all_of_processor(),
          .clock_source = read_clock_source(),
          .memory = read_memory(),
          .limits = read_limits(),
          .gpu = read_all_of_gpu(device),
          .network = read_network()};
}

}  // namespace sidestream::launch::doctor

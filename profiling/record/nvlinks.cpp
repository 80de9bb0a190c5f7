#include "profiling/record/nvlinks.hpp"

namespace sidestream::record {
namespace {

using Device = NvmlLibrary::Device;
constexpr unsigned kMostLinks = 36;           // of a GPU: 18 today
constexpr unsigned kSpeedOfActiveLinks = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
enum RemoteKind { kGpu = 0, kSwitch = 2 };

// nvmlPciInfo_t
struct PciInfo {
  char legacy_bus_id[16] = {};
  unsigned domain = 0, bus = 0, device = 0, device_id = 0, subsystem_id = 0;
  char bus_id[32] = {};
};

// nvmlFieldValue_t
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int kind = 0, status = -1;
  union {
    unsigned number;
    unsigned long long bits = 0;
  };
};

struct Calls {
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*state)(Device, unsigned, int*) = nullptr;
  int (*remote_kind)(Device, unsigned, int*) = nullptr;
  int (*remote_pci)(Device, unsigned, PciInfo*) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;

  explicit Calls(const NvmlLibrary& library) {
    library.find(fields, "nvmlDeviceGetFieldValues");
    library.find(state, "nvmlDeviceGetNvLinkState");
    library.find(remote_kind, "nvmlDeviceGetNvLinkRemoteDeviceType");
    library.find(remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    library.find(pci, "nvmlDeviceGetPciInfo_v3");
  }
  bool complete() const {
    return fields != nullptr && state != nullptr && remote_kind != nullptr &&
           remote_pci != nullptr && pci != nullptr;
  }
};

double bytes_per_s_of_a_link(const Calls& call, Device device) {
  FieldValue speed = {};
  speed.field = kSpeedOfActiveLinks;
  if (call.fields(device, 1, &speed) != kNvmlSuccess || speed.status != kNvmlSuccess) return 0;
  return speed.number * 1e6;
}

void add_link(NvLinks& links, const Calls& call, Device device, unsigned link, double speed) {
  int is_up = 0, kind = -1;
  if (call.state(device, link, &is_up) != kNvmlSuccess || is_up == 0) return;
  if (call.remote_kind(device, link, &kind) != kNvmlSuccess) return;
  PciInfo other;
  if (kind == kSwitch) links.switch_bytes_per_s += speed;
  if (kind == kGpu && call.remote_pci(device, link, &other) == kNvmlSuccess)
    links.to[other.bus_id] += speed;
}

}  // namespace

NvLinks read_nvlinks(const NvmlGpu& gpu, const std::string& library) {
  const auto nvml = NvmlLibrary::open(gpu, library);
  if (nvml == nullptr) return {};
  const Calls call(*nvml);
  PciInfo own;
  if (!call.complete() || call.pci(nvml->device(), &own) != kNvmlSuccess) return {};
  NvLinks links{.bus_id = own.bus_id};
  const double speed = bytes_per_s_of_a_link(call, nvml->device());
  for (unsigned link = 0; speed > 0 && link < kMostLinks; ++link)
    add_link(links, call, nvml->device(), link, speed);
  return links;
}

}  // namespace sidestream::record

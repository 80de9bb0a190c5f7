// A library with some calls of NVML, of a GPU that uses 1.5 J from sample to sample and is held
// down by its power cap and by sync boost. It has five NVLinks of 25 GB/s: two to a switch, two to
// another GPU, and one that is down. Structures have the layout of nvml.h.
#include <cstring>

namespace {

struct PciInfo {
  char legacy_bus_id[16];
  unsigned numbers[5];
  char bus_id[32];
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int kind, status;
  unsigned long long value;
};

constexpr int kInvalidArgument = 2, kNotFound = 6;

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  static int gpu = 0;
  *device = &gpu;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  if (std::strcmp(bus_id, "0000:3B:00.0") != 0) return kNotFound;
  return nvmlDeviceGetHandleByIndex_v2(0, device);
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long total = 1'000'000;
  *millijoules = total;
  total += 1500;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x10;
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].status = values[i].field == 90 ? 0 : kInvalidArgument;
    values[i].value = 25000;
  }
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* is_up) {
  *is_up = link < 4;
  return link < 5 ? 0 : kInvalidArgument;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned link, int* kind) {
  *kind = link < 2 ? 2 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, PciInfo* pci) {
  std::strcpy(pci->bus_id, "00000000:4C:00.0");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void*, PciInfo* pci) {
  std::strcpy(pci->bus_id, "00000000:3B:00.0");
  return 0;
}
}

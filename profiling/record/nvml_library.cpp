#include "profiling/record/nvml_library.hpp"

#include <dlfcn.h>

namespace sidestream::record {

std::unique_ptr<NvmlLibrary> NvmlLibrary::open(const NvmlGpu& gpu, const std::string& library) {
  if (gpu == NvmlGpu(std::string())) return nullptr;
  std::unique_ptr<NvmlLibrary> opened(new NvmlLibrary);
  opened->handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened->handle_ == nullptr || !opened->start(gpu)) return nullptr;
  return opened;
}

bool NvmlLibrary::start(const NvmlGpu& gpu) {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  find(init, "nvmlInit_v2");
  find(shutdown, "nvmlShutdown");
  if (init == nullptr || shutdown == nullptr || init() != kNvmlSuccess) return false;
  shutdown_ = shutdown;
  return find_device(gpu);
}

bool NvmlLibrary::find_device(const NvmlGpu& gpu) {
  if (const auto* pci_bus = std::get_if<std::string>(&gpu)) {
    int (*by_bus)(const char*, Device*) = nullptr;
    find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    return by_bus != nullptr && by_bus(pci_bus->c_str(), &device_) == kNvmlSuccess;
  }
  int (*by_index)(unsigned, Device*) = nullptr;
  find(by_index, "nvmlDeviceGetHandleByIndex_v2");
  return by_index != nullptr && by_index(std::get<unsigned>(gpu), &device_) == kNvmlSuccess;
}

void* NvmlLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

NvmlLibrary::~NvmlLibrary() {
  if (shutdown_ != nullptr) shutdown_();
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace sidestream::record

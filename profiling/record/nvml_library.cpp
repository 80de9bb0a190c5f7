#include "profiling/record/nvml_library.hpp"

#include <dlfcn.h>

namespace sidestream::record {

std::unique_ptr<NvmlLibrary> NvmlLibrary::open(int gpu, const std::string& library) {
  if (gpu < 0) return nullptr;
  std::unique_ptr<NvmlLibrary> opened(new NvmlLibrary);
  opened->handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened->handle_ == nullptr || !opened->start(gpu)) return nullptr;
  return opened;
}

bool NvmlLibrary::start(int gpu) {
  int (*init)() = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*shutdown)() = nullptr;
  find(init, "nvmlInit_v2");
  find(by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(shutdown, "nvmlShutdown");
  if (init == nullptr || by_index == nullptr || shutdown == nullptr || init() != kSuccess)
    return false;
  shutdown_ = shutdown;
  return by_index(static_cast<unsigned>(gpu), &device_) == kSuccess;
}

void* NvmlLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

NvmlLibrary::~NvmlLibrary() {
  if (shutdown_ != nullptr) shutdown_();
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace sidestream::record

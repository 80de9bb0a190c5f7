// NVIDIA's management library, found when the program runs, and one GPU in it: neither a toolkit
// nor a driver is needed. What is needed of nvml.h is declared where it is used; its calls keep
// their form for good.
#pragma once

#include <memory>
#include <string>

namespace sidestream::record {

class NvmlLibrary {
 public:
  static constexpr int kSuccess = 0;  // what every call returns that went well
  using Device = void*;

  // gpu: number of the device as NVML counts, or -1. Nothing without a library, a driver or a
  // device.
  static std::unique_ptr<NvmlLibrary> open(int gpu, const std::string& library);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  Device device() const noexcept { return device_; }

  // Null where this version of the library lacks the function.
  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(symbol(name));
  }

 private:
  NvmlLibrary() = default;
  void* symbol(const char* name) const;
  bool start(int gpu);

  void* handle_ = nullptr;
  Device device_ = nullptr;
  int (*shutdown_)() = nullptr;
};

}  // namespace sidestream::record

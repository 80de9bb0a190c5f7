// NVIDIA's management library, found when the program runs, and one GPU in it: neither a toolkit
// nor a driver is needed. What is needed of nvml.h is declared where it is used; its calls keep
// their form for good.
#pragma once

#include <memory>
#include <string>
#include <variant>

namespace sidestream::record {

// Its address on the PCI bus, as CUDA tells it ("0000:3B:00.0"; empty: no GPU), or its number among
// all that NVML counts, which leaves none out and orders them by the bus. CUDA leaves some out and
// puts the fastest first, so that its numbers say nothing here.
using NvmlGpu = std::variant<std::string, unsigned>;

inline constexpr int kNvmlSuccess = 0;  // what every call returns that went well

class NvmlLibrary {
 public:
  using Device = void*;

  // Nothing without a library, a driver or the device.
  static std::unique_ptr<NvmlLibrary> open(const NvmlGpu& gpu, const std::string& library);
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
  bool start(const NvmlGpu& gpu);
  bool find_device(const NvmlGpu& gpu);

  void* handle_ = nullptr;
  Device device_ = nullptr;
  int (*shutdown_)() = nullptr;
};

}  // namespace sidestream::record

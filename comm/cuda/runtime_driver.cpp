// The Driver of the CUDA runtime: one call each, and nothing else. The only file that includes
// CUDA's headers in this folder.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>

#include "comm/cuda/driver.hpp"
#include "core/base/error.hpp"
#include "core/base/host_memory.hpp"

namespace sidestream::comm::cuda {
namespace {

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // a sticky error stays, any other must not turn up in a later call
  throw core::Error(std::string(call) + ": " + text_of(error));
}

std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (const char byte : uuid.bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(byte));
    text += digits.data();
  }
  return text;
}

std::string pci_bus_text(int index) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index),
        "cudaDeviceGetPCIBusId");
  return text.data();
}

std::string why_none(cudaError_t error) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "no NVIDIA driver is loaded on this machine";
  if (error == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is too old: it supports CUDA " + version_text(driver) +
           ", this build needs " + version_text(runtime);
  }
  if (error == cudaErrorNoDevice || error == cudaSuccess) {
    return "the driver shows no GPU to this process (CUDA_VISIBLE_DEVICES?)";
  }
  return text_of(error);
}

class RuntimeDriver final : public Driver {
 public:
  DeviceCount device_count() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return {.count = count};
    cudaGetLastError();
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const bool works = error == cudaErrorNoDevice || error == cudaSuccess;
    return {.count = 0,
            .problem = why_none(error),
            .expected = driver != 0,
            .none_visible = driver != 0 && works};
  }

  void set_device(int index) override { check(cudaSetDevice(index), "cudaSetDevice"); }

  DeviceProperties properties(int index) override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    int driver = 0;
    int runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return {.name = properties.name,
            .uuid = uuid_text(properties.uuid),
            .pci_bus = pci_bus_text(index),
            .version =
                "driver for CUDA " + version_text(driver) + ", runtime " + version_text(runtime)};
  }

  DeviceMemory memory() override {
    DeviceMemory memory;
    check(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes), "cudaMemGetInfo");
    return memory;
  }

  Stream create_stream(Priority priority) override {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                       priority == Priority::kHigh ? greatest : least),
          "cudaStreamCreateWithPriority");
    return stream;
  }
  void destroy_stream(Stream stream) noexcept override { cudaStreamDestroy(raw(stream)); }

  Event create_event() override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event;
  }
  void destroy_event(Event event) noexcept override { cudaEventDestroy(raw_event(event)); }
  void record(Event event, Stream stream) override {
    check(cudaEventRecord(raw_event(event), raw(stream)), "cudaEventRecord");
  }
  void wait(Stream stream, Event event) override {
    check(cudaStreamWaitEvent(raw(stream), raw_event(event), 0), "cudaStreamWaitEvent");
  }
  bool done(Event event) override {
    const cudaError_t state = cudaEventQuery(raw_event(event));
    if (state == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(state, "cudaEventQuery");
    return true;
  }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error != cudaErrorMemoryAllocation) check(error, "cudaMalloc");
    if (error == cudaSuccess) return memory;
    cudaGetLastError();
    const DeviceMemory now = this->memory();
    throw core::MemoryError("GPU memory: " + std::to_string(bytes >> 20) + " MiB wanted, " +
                            std::to_string(now.free_bytes >> 20) + " of " +
                            std::to_string(now.total_bytes >> 20) + " MiB are free");
  }
  void free(void* memory) noexcept override { cudaFree(memory); }

  void* allocate_pinned(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
    if (error != cudaErrorMemoryAllocation) check(error, "cudaHostAlloc");
    if (error == cudaSuccess) return memory;
    cudaGetLastError();
    // Who asked knows which flag does without.
    throw core::MemoryError("pinned host memory: " + std::to_string(bytes >> 10) + " KiB wanted, " +
                            core::read_host_memory().text());
  }
  void free_pinned(void* memory) noexcept override { cudaFreeHost(memory); }
  bool pin(void* memory, std::size_t bytes) override {
    const bool pinned = cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!pinned) cudaGetLastError();  // locked memory has limits: pageable copies work too
    return pinned;
  }
  void unpin(void* memory) noexcept override { cudaHostUnregister(memory); }

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, raw(stream)), "cudaMemcpyAsync");
  }
  void set_zero(void* memory, std::size_t bytes, Stream stream) override {
    check(cudaMemsetAsync(memory, 0, bytes, raw(stream)), "cudaMemsetAsync");
  }
  void start_profiler() override { check(cudaProfilerStart(), "cudaProfilerStart"); }
  void stop_profiler() override { check(cudaProfilerStop(), "cudaProfilerStop"); }
  void synchronize(Stream stream) override {
    check(cudaStreamSynchronize(raw(stream)), "cudaStreamSynchronize");
  }
  void finish_device(int index) noexcept override {
    int current = index;
    cudaGetDevice(&current);
    if (current != index) cudaSetDevice(index);
    cudaDeviceSynchronize();
    if (current != index) cudaSetDevice(current);
    cudaGetLastError();  // as in check()
  }

 private:
  static cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream); }
  static cudaEvent_t raw_event(Event event) { return static_cast<cudaEvent_t>(event); }
};

}  // namespace

std::shared_ptr<Driver> make_driver() { return std::make_shared<RuntimeDriver>(); }

}  // namespace sidestream::comm::cuda

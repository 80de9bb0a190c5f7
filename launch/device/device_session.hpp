// The device of a training run: where tensors go, on which stream, with which switches of LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "comm/cuda/driver.hpp"
#include "launch/options/train_options.hpp"
#include "parallel/device_tools.hpp"

namespace sidestream::launch {

class DeviceSession {
 public:
  // The device that the communicator works on; the calling thread gets a compute stream of its own
  // there, in place of the legacy default stream. Throws ConfigError when LibTorch cannot use that
  // device, or when an option needs another one.
  DeviceSession(const comm::Communicator& communicator, const TrainOptions& options);
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  const torch::Device& device() const noexcept { return device_; }
  bool on_gpu() const noexcept { return !device_.is_cpu(); }
  const std::shared_ptr<comm::cuda::Driver>& driver() const noexcept { return driver_; }
  std::string name() const;     // "NVIDIA H200", or the processor's
  std::string pci_bus() const;  // "0000:3B:00.0"; empty on the processor

  // Of a GPU, what is free but for what libraries take.
  std::int64_t usable_bytes() const;
  // Throws ConfigError with need and have, and the advice, when that is not enough.
  void require_memory(std::size_t bytes, const std::string& advice) const;

 private:
  torch::Device device_ = torch::kCPU;
  std::shared_ptr<comm::cuda::Driver> driver_;  // null on the processor
  std::optional<c10::Stream> previous_stream_;
};

// How LibTorch's products on a GPU round, in the whole process: to tf32 where that is the
// precision, and partial sums never below fp32. What DeviceSession does for its run.
void choose_products(Precision precision);

// The kernel that causal attention of this model takes on this device: "LibTorch's flash kernel",
// cudnn, efficient or math, or "cuDNN's kernels of packed operands".
std::string attention_kernel(const torch::Device& device, const TrainOptions& options);

// Peak of the device's memory that this rank has taken, in bytes (device_memory.hpp); nothing on
// the processor.
std::optional<std::int64_t> device_memory_peak_bytes(const torch::Device& device,
                                                     const comm::Communicator& communicator);

}  // namespace sidestream::launch

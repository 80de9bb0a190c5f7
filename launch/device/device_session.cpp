#include "launch/device/device_session.hpp"

#include <fmt/format.h>

#include <ATen/Context.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "comm/device/device_choice.hpp"
#include "core/base/error.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/device/device_memory.hpp"
#include "launch/device/gpu_operators.hpp"
#include "launch/device/graph_engine.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

void require_libtorch_with_cuda() {
  if (at::hasCUDA()) return;
  throw core::ConfigError(
      "--device cuda: the LibTorch of this build works on processors only: install torch with "
      "CUDA, or say --device cpu");
}

void require_graph(const comm::Communicator& communicator) {
  if (!has_graph_engine())
    throw core::ConfigError(
        "--cuda-graph on: this build was made without CUDA graphs: build with a toolkit of the "
        "CUDA that torch was built for, or leave --cuda-graph out");
  if (!communicator.captures_collectives())
    throw core::ConfigError(fmt::format(
        "--cuda-graph on: sums of the backend {} pass through the host and cannot be captured: "
        "leave --backend out for NCCL, or --cuda-graph",
        communicator.backend_name()));
}

}  // namespace

void choose_products(Precision precision) {
  at::Context& context = at::globalContext();
  const bool tf32 = precision == Precision::kTf32;
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowTF32CuDNN(tf32);
  // In fp16 partial sums would be infinite where the product is not, in bf16 they would lose digits
  // that the product has.
  context.setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  context.setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
}

DeviceSession::DeviceSession(const comm::Communicator& communicator, const TrainOptions& options) {
  const std::optional<int> index = communicator.device();
  if (!index) {
    refuse_what_needs_a_gpu(options);
    return;
  }
  require_libtorch_with_cuda();
  if (options.cuda_graph) require_graph(communicator);
  choose_products(options.precision);
  device_ = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*index));
  driver_ = comm::cuda::make_driver();
  driver_->set_device(*index);
  at::globalContext().lazyInitDevice(
      device_.type());  // the allocator's numbers are asked for first
  const c10::impl::VirtualGuardImpl guard(device_.type());
  guard.setDevice(device_);
  require_gpu_operators(options);
  previous_stream_ =
      guard.exchangeStream(guard.getStreamFromGlobalPool(device_, /*isHighPriority=*/false));
}

DeviceSession::~DeviceSession() {
  if (!previous_stream_) return;
  try {
    const c10::impl::VirtualGuardImpl guard(device_.type());
    guard.exchangeStream(*previous_stream_);
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

std::string DeviceSession::name() const {
  return on_gpu() ? driver_->properties(device_.index()).name : processor_name();
}

std::string DeviceSession::pci_bus() const {
  return on_gpu() ? driver_->properties(device_.index()).pci_bus : "";
}

std::int64_t DeviceSession::usable_bytes() const {
  return static_cast<std::int64_t>(driver_->memory().free_bytes) -
         static_cast<std::int64_t>(comm::kLibraryBytes);
}

void DeviceSession::require_memory(std::size_t bytes, const std::string& advice) const {
  if (const auto shortage = comm::memory_shortage(driver_->memory(), bytes))
    throw core::ConfigError(*shortage + (advice.empty() ? "" : ". " + advice));
}

std::string attention_kernel(const torch::Device& device, const TrainOptions& options) {
  const auto& model = options.model.config;
  if (model.packed_attention) return "cuDNN's kernels of packed operands";
  const torch::ScalarType type = activation_type(options.precision);
  const std::int64_t length = sequence_length(options);
  // Views as the model makes them: the choice looks at strides too.
  const std::int64_t batch = options.data.batch_size_per_rank;
  const torch::Tensor qkv_bt3c = torch::empty(
      {batch, length, 3 * model.width}, torch::dtype(type).device(device).requires_grad(true));
  const auto heads_first = [&](const torch::Tensor& x_btc) {
    return x_btc.view({batch, length, model.heads, model.width / model.heads}).transpose(1, 2);
  };
  const auto parts = qkv_bt3c.split(model.width, 2);
  const auto choice = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(heads_first(parts[0]), heads_first(parts[1]), heads_first(parts[2]), {},
                            model.dropout, /*is_causal=*/true));
  switch (choice) {
    case at::SDPBackend::flash_attention:
      return "LibTorch's flash kernel";
    case at::SDPBackend::efficient_attention:
      return "LibTorch's efficient kernel";
    case at::SDPBackend::cudnn_attention:
      return "LibTorch's cudnn kernel";
    case at::SDPBackend::math:
      return "LibTorch's math kernel";
    default:
      return fmt::format("LibTorch's kernel {}", static_cast<int>(choice));
  }
}

std::optional<std::int64_t> device_memory_peak_bytes(const torch::Device& device,
                                                     const comm::Communicator& communicator) {
  if (device.is_cpu()) return std::nullopt;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return device_memory_peak({.peak_allocated_bytes = stats.allocated_bytes[kAll].peak,
                             .reserved_bytes = stats.reserved_bytes[kAll].current},
                            communicator.device_memory_taken());
}

}  // namespace sidestream::launch

#include "parallel/state_memory.hpp"

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/multiple.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/memory_plan.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::size_t whole_pages(std::size_t bytes) { return core::rounded_up(bytes, kPageBytes); }

// Weights, master weights and moments, each on pages of its own.
std::size_t state_bytes(const std::vector<Parameter>& parameters,
                        const DataParallelConfig& config) {
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters) elements.push_back(parameter.elements());
  const std::size_t fp32_bytes = whole_pages(padded_bytes(elements, core::DType::kFloat32));
  const bool has_master = config.parameter_dtype != core::DType::kFloat32;
  return whole_pages(padded_bytes(elements, config.parameter_dtype)) +
         (has_master ? fp32_bytes : 0) +
         whole_pages(flat_moment_bytes(elements, config.optimizer)) *
             static_cast<std::size_t>(moments_per_parameter(config.optimizer));
}

torch::Tensor zeros_of_own(std::size_t elements, core::DType dtype, torch::Device device) {
  return torch::zeros({static_cast<std::int64_t>(elements)},
                      torch::dtype(scalar_type_of(dtype)).device(device));
}

}  // namespace

StateMemory::StateMemory(comm::Communicator& communicator, const std::vector<Parameter>& parameters,
                         const DataParallelConfig& config, std::shared_ptr<core::CopyEngine> copies)
    : copies_(std::move(copies)) {
  if (communicator.size() == 1) return;
  const bool on_host = parameters.front().tensor.device().is_cpu();
  StateSharing sharing =
      settled_sharing(config, on_host ? RanksShare::kMemory : RanksShare::kNothing);
  if (sharing == StateSharing::kOn) {
    shared_bytes_ = state_bytes(parameters, config);
    shared_ = communicator.allocate_shared(shared_bytes_);
    if (!is_shared()) sharing = settled_sharing(config, RanksShare::kNothing);
  }
  is_sharded_ = sharing == StateSharing::kSharded;
  if (is_shared() || is_sharded()) communicator_ = &communicator;
}

Part StateMemory::part() const {
  if (!is_shared()) return {};
  return {.index = communicator_->rank(), .count = communicator_->size()};
}

torch::Tensor StateMemory::zeros(std::size_t elements, core::DType dtype, torch::Device device) {
  if (!is_shared()) return zeros_of_own(elements, dtype, device);
  const std::size_t bytes = whole_pages(elements * core::size_of(dtype));
  if (used_bytes_ + bytes > shared_bytes_) {
    throw core::Error("More optimizer state was asked for than was planned.");
  }
  const std::shared_ptr<std::byte> memory(shared_, shared_.get() + used_bytes_);
  used_bytes_ += bytes;
  return tensor_in(memory, elements, scalar_type_of(dtype), device);
}

torch::Tensor StateMemory::zeros_to_gather(std::size_t elements, core::DType dtype,
                                           torch::Device device) const {
  const auto memory = communicator_->allocate_registered(elements * core::size_of(dtype));
  if (memory != nullptr) return tensor_in(memory, elements, scalar_type_of(dtype), device);
  return zeros_of_own(elements, dtype, device);
}

torch::Tensor StateMemory::host_zeros(std::size_t elements, torch::ScalarType type) const {
  const auto memory = copies_->allocate_host(elements * torch::elementSize(type));
  return torch::from_blob(
             memory.get(), {static_cast<std::int64_t>(elements)}, [memory](void*) {},
             torch::dtype(type))
      .zero_();
}

std::int64_t StateMemory::meet() const {
  if (!is_shared()) return 0;
  const auto begin = std::chrono::steady_clock::now();
  communicator_->barrier();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sidestream::parallel

#include "launch/device/gpu_operators.hpp"

#include <fmt/format.h>

#include <exception>

#include <c10/util/Exception.h>

#include "comm/exchange_values.hpp"
#include "core/base/error.hpp"
#include "launch/options/train_parser.hpp"
#include "model/device/products.hpp"

namespace sidestream::launch {
namespace {

bool has_products() { return model::device::make_products() != nullptr; }

// What cuDNN says of this GPU; empty: it has such attention.
std::string objection_of_gpu(const model::device::PackedAttention& attention,
                             const TrainOptions& options) {
  const model::ModelConfig& model = options.model.config;
  return attention.objection({.dtype = activation_type(options.precision),
                              .deterministic = options.deterministic,
                              .batch = options.data.batch_size_per_rank,
                              .time = sequence_length(options),
                              .heads = model.heads,
                              .head_width = model.width / model.heads});
}

void require_packed_attention(const TrainOptions& options) {
  const auto attention = model::device::make_packed_attention();
  if (!attention)
    throw core::ConfigError(
        "--packed-attention on: this build was made without cuDNN's graphs: build with a toolkit "
        "of the CUDA that torch was built for, and with the package nvidia-cudnn-frontend beside "
        "torch (`sidestream --version` says what there was), or leave --packed-attention out");
  const std::string objection = objection_of_gpu(*attention, options);
  if (objection.empty()) return;
  throw core::ConfigError(fmt::format(
      "--packed-attention on: cuDNN has no such attention for this GPU ({}): leave it out",
      objection));
}

bool can_pack_attention(const TrainOptions& options) {
  const auto attention = model::device::make_packed_attention();
  return attention && model::objection_to_packed_attention(options.model.config).empty() &&
         has_packed_attention(*attention, options);
}

}  // namespace

torch::ScalarType activation_type(Precision precision) {
  if (precision == Precision::kBf16) return torch::kBFloat16;
  return precision == Precision::kFp16 ? torch::kHalf : torch::kFloat32;
}

// LibTorch's errors are not the only ones: handles and graphs throw cuDNN's and this program's own.
bool has_packed_attention(const model::device::PackedAttention& attention,
                          const TrainOptions& options) {
  try {
    return objection_of_gpu(attention, options).empty();
  } catch (const c10::OutOfMemoryError&) {  // the run would meet it a moment later
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

void require_gpu_operators(const TrainOptions& options) {
  if (options.model.config.tune_products && !has_products())
    throw core::ConfigError(
        "--tune-products on: this build was made without cublasLt's products: build with a toolkit "
        "of the CUDA that torch was built for (`sidestream --version` says what there was), or "
        "leave --tune-products out");
  if (options.model.config.packed_attention) require_packed_attention(options);
}

void settle_gpu_operators(TrainOptions& options, bool on_gpu) {
  model::ModelConfig& model = options.model.config;
  const bool can = on_gpu && activation_type(options.precision) != torch::kFloat32 &&
                   model.fused_ops == model::FusedOps::kOn;
  if (options.model.packed_attention == Toggle::kAuto)
    model.packed_attention = can && can_pack_attention(options);
  if (options.model.tune_products == Toggle::kAuto)
    model.tune_products = can && !options.deterministic && has_products();
}

void agree_on_gpu_operators(TrainOptions& options, comm::Communicator& communicator) {
  struct Has {
    bool packed_attention, tuned_products;
  };
  model::ModelConfig& model = options.model.config;
  for (const Has& rank :
       comm::exchange_values(communicator, Has{model.packed_attention, model.tune_products},
                             {.purpose = "operators of GPUs"})) {
    if (options.model.packed_attention == Toggle::kAuto)
      model.packed_attention &= rank.packed_attention;
    if (options.model.tune_products == Toggle::kAuto) model.tune_products &= rank.tuned_products;
  }
}

}  // namespace sidestream::launch

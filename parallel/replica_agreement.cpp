#include "parallel/replica_agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "core/base/error.hpp"
#include "parallel/state_slices.hpp"
#include "parallel/tensor_place.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {
namespace {

const std::string kProblem = "problem: ";  // how a rank starts that has no model to describe

std::string line_of(std::string_view kind, const Parameter& item) {
  return fmt::format("{} '{}' {} [{}]\n", kind, item.name, c10::toString(item.tensor.scalar_type()),
                     fmt::join(item.tensor.sizes().vec(), ", "));
}

const char* name_of(GradientSync sync) {
  switch (sync) {
    case GradientSync::kPerParameter:
      return "per parameter";
    case GradientSync::kBucketed:
      return "bucketed";
    case GradientSync::kOverlapped:
      return "overlapped";
  }
  throw core::Error("a way to synchronise gradients without a name");
}

const char* name_of(StateSharing sharing) {
  switch (sharing) {
    case StateSharing::kAuto:
      return "auto";
    case StateSharing::kOff:
      return "off";
    case StateSharing::kOn:
      return "on";
    case StateSharing::kSharded:
      return "sharded";
  }
  throw core::Error("a way to share state without a name");
}

// A line for each setting that changes what is sent, or what becomes of it.
std::string description(const DataParallelConfig& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  std::string text = fmt::format("gradient_sync {}\n", name_of(config.gradient_sync));
  text += config.bucket_mb ? fmt::format("bucket_mb {}\n", *config.bucket_mb) : "bucket_mb auto\n";
  text += fmt::format("first_bucket_mb {}\n", config.first_bucket_mb);
  text += fmt::format("parameter_dtype {}\n", core::name_of(config.parameter_dtype));
  text += fmt::format("gradient dtype {}\n", core::name_of(config.gradient_dtype()));
  text += fmt::format("grad_accumulation {}\n", config.grad_accumulation);
  text += fmt::format("state_sharing {}\n", name_of(config.state_sharing));
  text += fmt::format("optimizer algorithm {}\n", parallel::name_of(optimizer.algorithm));
  text += fmt::format("optimizer kernel {}\n",
                      optimizer.kernel == OptimizerKernel::kFused ? "fused" : "unfused");
  text += fmt::format("optimizer betas {} {}, eps {}\n", optimizer.beta1, optimizer.beta2,
                      optimizer.eps);
  text += fmt::format("optimizer weight_decay {}\n", optimizer.weight_decay);
  text += fmt::format("optimizer momentum {}\n", optimizer.momentum);
  text += fmt::format("optimizer grad_clip {}\n", optimizer.grad_clip);
  text += fmt::format("optimizer state_dtype {}\n", core::name_of(optimizer.state_dtype));
  text += fmt::format("optimizer rounding_seed {}\n", optimizer.rounding_seed);
  text += fmt::format("optimizer state_residence {}\n",
                      optimizer.state_residence == StateResidence::kHost ? "host" : "device");
  text += fmt::format("loss_scale (number in its kind) {} from {} with interval {}\n",
                      static_cast<int>(config.loss_scale.kind), config.loss_scale.scale,
                      config.loss_scale.interval);
  return text;
}

std::string description(const std::vector<Parameter>& parameters,
                        const std::vector<Parameter>& constants, const DataParallelConfig& config) {
  std::string text = description(config);
  for (const Parameter& parameter : parameters) text += line_of("parameter", parameter);
  for (const Parameter& constant : constants) text += line_of("constant", constant);
  return text;
}

// The first line that differs, of both.
std::string first_difference(const std::string& expected, const std::string& found) {
  std::istringstream expected_lines(expected);
  std::istringstream found_lines(found);
  std::string left;
  std::string right;
  bool more = true;
  while (more && left == right) {
    const bool more_left = static_cast<bool>(std::getline(expected_lines, left));
    const bool more_right = static_cast<bool>(std::getline(found_lines, right));
    if (!more_left) left = "nothing more";
    if (!more_right) right = "nothing more";
    more = more_left || more_right;
  }
  return fmt::format("expected {}, found {}", left, right);
}

// The same decision on every rank, from what all of them said.
void require_same(const std::vector<std::string>& all) {
  const bool together =
      std::all_of(all.begin(), all.end(), [&](const auto& text) { return text == all[0]; });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].starts_with(kProblem)) continue;
    const std::string problem = all[rank].substr(kProblem.size());
    throw core::AgreedError(together ? problem : fmt::format("Rank {}: {}", rank, problem),
                            core::ExitCode::kConfig);
  }
  if (together) return;
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& text) { return text != all[0]; });
  throw core::AgreedError(
      fmt::format("Rank {} has another model or configuration than rank 0: {}. Start all ranks "
                  "with the same options.",
                  other - all.begin(), first_difference(all[0], *other)),
      core::ExitCode::kConfig);
}

}  // namespace

std::vector<Parameter> agreed_parameters(comm::Communicator& communicator,
                                         const torch::nn::Module& module,
                                         const DataParallelConfig& config,
                                         const std::optional<torch::Device>& place) {
  std::vector<Parameter> parameters;
  std::string mine;
  try {
    config.validate();
    parameters = trainable_parameters(module, config.parameter_dtype);
    const std::vector<Parameter> constants = constant_tensors(module);
    if (place) {
      require_place(parameters, *place);
      require_place(constants, *place);
    }
    mine = description(parameters, constants, config);
  } catch (const core::Error& error) {  // told to the others first: they wait for this rank
    mine = kProblem + std::string(error.what());
  }
  require_same(communicator.exchange(mine, {.purpose = "models"}));
  return parameters;
}

void broadcast_parameters(comm::Communicator& communicator, ParameterSpace& parameters,
                          const comm::CollectiveOptions& options) {
  if (parameters.is_shared()) {
    parameters.meet();
    return;
  }
  // Collectives of GPUs want memory of GPUs.
  const bool in_parts = parameters.state_copies() != nullptr;
  const torch::Tensor& flat = parameters.flat_master();
  const std::int64_t part =
      in_parts ? static_cast<std::int64_t>(kStateSliceElements) : flat.numel();
  for (std::int64_t first = 0; first < flat.numel(); first += part) {
    const torch::Tensor place = flat.narrow(0, first, std::min(part, flat.numel() - first));
    const torch::Tensor sent = place.to(parameters.device());
    communicator
        .broadcast(sent.mutable_data_ptr(), static_cast<std::size_t>(sent.numel()),
                   core::DType::kFloat32, 0, options)
        .wait();
    if (!sent.is_alias_of(place)) place.copy_(sent);
  }
  parameters.refresh_weights();
}

void broadcast_tensors(comm::Communicator& communicator, const std::vector<Parameter>& tensors,
                       const comm::CollectiveOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> dense;
  std::vector<comm::Buffer> buffers;
  for (const Parameter& tensor : tensors) {
    dense.push_back(tensor.tensor.contiguous());
    if (tensor.tensor.nbytes() == 0) continue;
    buffers.push_back(
        {dense.back().mutable_data_ptr(), dense.back().nbytes(), core::DType::kUInt8});
  }
  communicator.broadcast_each(buffers, 0, options).wait();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!dense[i].is_same(tensors[i].tensor)) assign(dense[i], tensors[i].tensor);
  }
}

void require_same_order(comm::Communicator& communicator, const std::vector<std::string>& names) {
  const std::vector<std::string> all =
      communicator.exchange(fmt::format("'{}'", fmt::join(names, "'\n'")),
                            {.purpose = "the bucket order that was given"});
  const auto other = std::ranges::find_if(all, [&](const auto& text) { return text != all[0]; });
  if (other == all.end()) return;
  throw core::AgreedError(
      fmt::format("Rank {} gave another bucket order than rank 0: {}. All ranks "
                  "give the same.",
                  other - all.begin(), first_difference(all[0], *other)),
      core::ExitCode::kConfig);
}

std::vector<std::size_t> agree_on_order(comm::Communicator& communicator,
                                        const std::vector<std::size_t>& observed) {
  const bool speaks = communicator.rank() == 0;
  const std::vector<std::string> all =
      communicator.exchange(speaks ? fmt::format("{}", fmt::join(observed, " ")) : std::string(),
                            {.purpose = "bucket order"});
  std::istringstream text(all.at(0));
  std::vector<std::size_t> order;
  for (std::size_t index = 0; text >> index;) order.push_back(index);
  if (!std::is_permutation(order.begin(), order.end(), observed.begin(), observed.end())) {
    throw core::Error("Rank 0 sent a bucket order of other parameters than this rank has.");
  }
  return order;
}

}  // namespace sidestream::parallel

#include "parallel/weight_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

// Of every parameter, over its whole length: an optimizer's step changes at least one of so many.
constexpr std::size_t kSampledElements = 4;

const char* what_goes_wrong(const ParameterSpace& parameters) {
  return parameters.is_shared()
             ? "the ranks of this node have their weights once, in shared memory, and each of them "
               "would update the same ones"
             : "each rank has the sums of its slices only, and would step from gradients that are "
               "no sums elsewhere";
}

}  // namespace

void WeightWatch::begin() {
  versions_.clear();
  for (const Parameter& parameter : parameters_.parameters())
    versions_.push_back(static_cast<std::uint32_t>(parameter.tensor._version()));
  samples_ = samples_of_all();
}

// As many bytes for every parameter, whatever its length.
std::vector<std::byte> WeightWatch::samples_of_all() const {
  if (!parameters_.device().is_cpu()) return {};
  const std::size_t element_bytes = core::size_of(parameters_.dtype());
  std::vector<std::byte> samples(parameters_.size() * kSampledElements * element_bytes);
  std::byte* place = samples.data();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& tensor = parameters_.weights(i);
    const auto* weights = static_cast<const std::byte*>(tensor.const_data_ptr());
    const auto elements = static_cast<std::size_t>(tensor.numel());
    for (std::size_t k = 0; k < kSampledElements; ++k, place += element_bytes) {
      const std::size_t element = elements * k / kSampledElements;
      if (elements > 0) std::memcpy(place, weights + element * element_bytes, element_bytes);
    }
  }
  return samples;
}

bool WeightWatch::is_written(std::size_t parameter, const std::vector<std::byte>& samples) const {
  const auto version = static_cast<std::uint32_t>(parameters_.at(parameter).tensor._version());
  if (version != versions_.at(parameter)) return true;
  const std::size_t bytes = samples_.size() / parameters_.size();
  const std::size_t first = parameter * bytes;
  return bytes > 0 && std::memcmp(&samples_[first], &samples[first], bytes) != 0;
}

void WeightWatch::require_unwritten() const {
  if (!versions_.empty()) require_same(samples_of_all());
}

void WeightWatch::require_unwritten_by_own() const {
  if (versions_.empty()) return;
  require_same(parameters_.is_shared() ? samples_ : samples_of_all());
}

void WeightWatch::require_same(const std::vector<std::byte>& samples) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_written(i, samples)) continue;
    throw core::Error(fmt::format(
        "Parameter '{}' was written to after finish_backward(), and not by update(). That is no "
        "place for an optimizer of your own: {}. Call update() of DataParallel, which has AdamW "
        "and SGD, or make it with StateSharing::kOff (--zero 0). Who drops the step and sets "
        "weights calls drop_gradients() first.",
        parameters_.at(i).name, what_goes_wrong(parameters_)));
  }
}

}  // namespace sidestream::parallel

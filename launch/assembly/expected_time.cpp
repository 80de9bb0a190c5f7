#include "launch/assembly/expected_time.hpp"

#include "core/base/error.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/options/train_parser.hpp"
#include "model/config.hpp"

namespace sidestream::launch {
namespace {

constexpr double kReachedShare = 0.4;  // the 11M model on two cores: 0.54 in fp32, 0.39 in bf16
constexpr double kStartSeconds = 3;

double at_or_zero(const std::map<std::string, double>& rates, const char* name) {
  const auto found = rates.find(name);
  return found == rates.end() ? 0 : found->second;
}

double peak_flops_per_s(const TrainOptions& options, int ranks) {
  const bool may_use_gpu = options.device != Device::kCpu;
  const auto stored = load_ceilings(ceilings_file(), may_use_gpu ? gpu_name() : "");
  if (!stored) return 0;
  const bool fp16 = options.precision == Precision::kFp16;
  const bool bf16 = options.precision == Precision::kBf16;
  if (stored->device)
    return ranks * at_or_zero(stored->device->flops_per_s, fp16 ? "fp16" : bf16 ? "bf16" : "fp32");
  return bf16 ? stored->bf16_flops_per_s : stored->fp32_flops_per_s;
}

}  // namespace

std::optional<double> expected_seconds(TrainOptions options, int ranks) {
  const double peak = peak_flops_per_s(options, ranks);
  if (peak <= 0) return std::nullopt;
  try {
    set_vocabulary(options, open_data(options).vocab_size);
  } catch (const core::Error&) {
    return std::nullopt;
  }
  const double parameters = static_cast<double>(model::parameter_count(options.model.config));
  const double trained = static_cast<double>(options.steps * tokens_per_step(options, ranks));
  const bool evaluates = options.evaluation.every > 0;
  const double evaluated = evaluates ? static_cast<double>(options.evaluation.tokens) : 0;
  return kStartSeconds + parameters * (6 * trained + 2 * evaluated) / (peak * kReachedShare);
}

}  // namespace sidestream::launch

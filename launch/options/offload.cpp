#include "launch/options/offload.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

constexpr std::string_view kOffloadNone = "none", kOffloadResiduals = "residuals",
                           kOffloadOptimizer = "optimizer";

[[noreturn]] void refuse_offload(const std::string& text) {
  throw core::ConfigError(fmt::format(
      "expected none, residuals, optimizer, or both as residuals,optimizer, found '{}'", text));
}

}  // namespace

Offload Offload::from_text(const std::string& text) {
  Offload offload;
  if (text == kOffloadNone) return offload;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == kOffloadNone)
      throw core::ConfigError(fmt::format("expected none or names without it, found '{}'", text));
    if (word != kOffloadResiduals && word != kOffloadOptimizer) refuse_offload(text);
    bool& one = word == kOffloadResiduals ? offload.residuals : offload.optimizer;
    if (one) throw core::ConfigError(fmt::format("expected each name once, found '{}'", text));
    one = true;
  }
  if (!offload.any() || text.ends_with(',')) refuse_offload(text);
  return offload;
}

std::string Offload::text() const {
  if (residuals && optimizer) return "residuals,optimizer";
  return std::string(residuals ? kOffloadResiduals : optimizer ? kOffloadOptimizer : kOffloadNone);
}

Offload offload_of(const TrainOptions& options) {
  return {
      .residuals = options.model.config.residuals == model::ResidualPlace::kHost,
      .optimizer = options.parallel.optimizer.state_residence == parallel::StateResidence::kHost};
}

void refuse_offload_on_processor(const TrainOptions& options) {
  const Offload offload = offload_of(options);
  if (!offload.any()) return;
  throw core::ConfigError(fmt::format(
      "--offload {} moves what a GPU holds to the memory of its host, and on processors everything "
      "lies there: leave it out. --recompute blocks and --loss-chunks auto keep less for backward; "
      "--zero 1 and --optimizer-state-dtype bf16 take less for the optimizer's state",
      offload.text()));
}

}  // namespace sidestream::launch

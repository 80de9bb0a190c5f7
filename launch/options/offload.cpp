#include "launch/options/offload.hpp"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "core/base/error.hpp"
#include "launch/options/value_text.hpp"

namespace sidestream::launch {
namespace {

const std::array<std::string, 3> kWords = {"none", "residuals", "optimizer"};

}  // namespace

Offload Offload::from_text(const std::string& text) {
  Offload offload;
  if (text == kWords[0]) return offload;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t chosen = parse_choice(word, kWords);
    if (chosen == 0)
      throw core::ConfigError(fmt::format("expected none or names without it, found '{}'", text));
    bool& one = chosen == 1 ? offload.residuals : offload.optimizer;
    if (one) throw core::ConfigError(fmt::format("expected each name once, found '{}'", text));
    one = true;
  }
  if (!offload.any() || text.ends_with(',')) parse_choice("", kWords);
  return offload;
}

std::string Offload::text() const {
  if (residuals && optimizer) return "residuals,optimizer";
  return residuals ? "residuals" : optimizer ? "optimizer" : "none";
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

// Validation loss over a fixed set of samples, shared by the ranks.
#pragma once

#include <chrono>
#include <cstdint>

#include "comm/communicator.hpp"
#include "core/data/loader.hpp"
#include "core/data/token_stream.hpp"
#include "model/language_model.hpp"

namespace sidestream::launch {

struct EvaluatorConfig {
  std::int64_t tokens = 0;  // at least this many, as far as the validation split has them
  std::int64_t sequence_length = 0;
  std::int64_t batch_size_per_rank = 0;
  torch::Device device = torch::kCPU;  // of the model
  std::chrono::milliseconds deadline{std::chrono::minutes(10)};
};

class Evaluator {
 public:
  // Throws DataError when the validation split has less than one sample. `validation` must outlive
  // this.
  Evaluator(const data::TokenStream& validation, const EvaluatorConfig& config);

  // Mean cross-entropy over the first samples of the split, the same ones at each call and for any
  // number of ranks. Collective; blocks.
  double run(model::LanguageModel& model, comm::Communicator& communicator) const;

  std::int64_t samples() const noexcept { return samples_; }

 private:
  const data::TokenStream& validation_;
  EvaluatorConfig config_;
  std::int64_t samples_ = 0;
};

}  // namespace sidestream::launch

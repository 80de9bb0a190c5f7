#include "launch/trainer/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/exchange_values.hpp"
#include "core/base/error.hpp"
#include "core/base/multiple.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

double sum_over_ranks(comm::Communicator& communicator, double mine,
                      std::chrono::milliseconds deadline) {
  double sum = 0;
  for (const double theirs : comm::exchange_values(communicator, mine,
                                                   {.deadline = deadline,
                                                   .deadline_flag = "--timeout-eval",
                                                   .purpose = "evaluation sums"})) {
    sum += theirs;
  }
  return sum;
}

// Reads samples first .. first + rows - 1: tokens i T .. i T + T inclusive each.
struct SampleBatch {
  torch::Tensor inputs_bt;
  torch::Tensor targets_bt;
};

SampleBatch read_samples(const data::TokenStream& stream, std::int64_t first, std::int64_t rows,
                         std::int64_t length) {
  const torch::Tensor tokens_bt1 = torch::empty({rows, length + 1}, torch::kInt64);
  auto* data = tokens_bt1.data_ptr<int64_t>();
  data::WholeShards whole;
  for (std::int64_t row = 0; row < rows; ++row) {
    stream.read(static_cast<std::uint64_t>((first + row) * length),
                {data + row * (length + 1), static_cast<std::size_t>(length + 1)}, whole);
  }
  return {tokens_bt1.slice(1, 0, length).contiguous(),
          tokens_bt1.slice(1, 1, length + 1).contiguous()};
}

}  // namespace

Evaluator::Evaluator(const data::TokenStream& validation, const EvaluatorConfig& config)
    : validation_(validation), config_(config) {
  const std::int64_t there =
      (static_cast<std::int64_t>(validation.size()) - 1) / config.sequence_length;
  if (there < 1) {
    throw core::DataError(fmt::format("the validation split has {} tokens: one sample needs {}",
                                      validation.size(), config.sequence_length + 1));
  }
  // No more than there are, before they are rounded up: "all" may be said by a very large number.
  const std::int64_t tokens = std::min(config.tokens, there * config.sequence_length);
  samples_ = std::max<std::int64_t>(core::divided_up(tokens, config.sequence_length), 1);
}

double Evaluator::run(model::LanguageModel& model, comm::Communicator& communicator) const {
  const torch::NoGradGuard no_grad;
  const ranges::ScopedRange range(ranges::Phase::kEval);
  model.eval();
  double sum = 0;
  const std::int64_t stride = config_.batch_size_per_rank * communicator.size();
  for (std::int64_t first = config_.batch_size_per_rank * communicator.rank(); first < samples_;
       first += stride) {
    const std::int64_t rows = std::min(config_.batch_size_per_rank, samples_ - first);
    const SampleBatch batch = read_samples(validation_, first, rows, config_.sequence_length);
    const torch::Tensor loss =
        model.loss(batch.inputs_bt.to(config_.device), batch.targets_bt.to(config_.device));
    sum += loss.item<double>() * static_cast<double>(rows);
  }
  return sum_over_ranks(communicator, sum, config_.deadline) / static_cast<double>(samples_);
}

}  // namespace sidestream::launch

#include "launch/assembly/data_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "comm/exchange_values.hpp"
#include "core/base/error.hpp"
#include "core/base/warning.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/run_start.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

void require_one_sample(const data::TokenStream& validation, std::int64_t length) {
  if (validation.size() > static_cast<std::uint64_t>(length)) return;
  throw core::DataError(fmt::format(
      "the validation split has {} tokens: one sample needs {}. Use more validation data, a "
      "shorter --sequence-length, or --eval-every 0",
      validation.size(), length + 1));
}

// The model's threads do not run yet: the cores are free for looking at tokens.
int threads_of_a_rank(const TrainOptions& options, const comm::Topology& topology) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.threads.value_or(std::max(1, cores / std::max(1, topology.local_size)));
}

// Ranks that are done wait for the others at most so long, and a piece.
std::chrono::milliseconds time_of_a_part(const TrainOptions& options) {
  return std::min<std::chrono::milliseconds>(options.timeouts.setup / 4, std::chrono::seconds(5));
}

// Of the rank that has looked at least of its tokens: 1 once all are done.
double least_share(Session& session, const TrainOptions& options, double mine) {
  const std::vector<double> each = comm::exchange_values(session.communicator(), mine,
                                                         {.deadline = options.timeouts.setup,
                                                          .deadline_flag = "--timeout-setup",
                                                          .purpose = "looks at the tokens"});
  return *std::ranges::min_element(each);
}

// Nobody should take a long look for a run that hangs.
class WaitNews {
 public:
  void tell_now_and_then(double share) {
    constexpr std::chrono::seconds kBetween{30};
    if (Clock::now() < next_) return;
    next_ = Clock::now() + kBetween;
    core::print_note(fmt::format("--data: looking at every token before training, {:.0f} % so far",
                                 100 * share));
  }

 private:
  // Most data sets are looked at before that.
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(5);
};

}  // namespace

DataCheck::DataCheck(const DataSources& sources, const TrainOptions& options,
                     const comm::Topology& topology)
    : sources_(sources), options_(options), ranks_(topology.size) {
  if (options.data.source == "synthetic") return;
  const data::TokenCheckConfig config{
      .vocab_size = static_cast<std::uint64_t>(options.model.config.vocab_size),
      .threads = threads_of_a_rank(options, topology),
      .part = static_cast<std::uint64_t>(topology.local_rank),
      .parts = static_cast<std::uint64_t>(topology.local_size)};
  tokens_.emplace(data::TokenStream::open(options.data.source, data::Split::kTrain));
  train_.emplace(*tokens_, config);
  if (sources.validation) validation_.emplace(*sources.validation, config);
}

void DataCheck::go_on(Clock::time_point until) {
  if (!train_) return;
  if (train_->go_on(until) && (!validation_ || validation_->go_on(until))) require_enough();
}

double DataCheck::share() const noexcept {
  if (!train_) return 1;
  const std::uint64_t pieces = train_->pieces() + (validation_ ? validation_->pieces() : 0);
  const std::uint64_t done = train_->done() + (validation_ ? validation_->done() : 0);
  return pieces == 0 ? 1 : static_cast<double>(done) / static_cast<double>(pieces);
}

void DataCheck::require_enough() const {
  const std::int64_t length = sequence_length(options_);
  if (sources_.validation && options_.evaluation.every > 0)
    require_one_sample(*sources_.validation, length);
  const auto samples = sources_.train->count(static_cast<std::uint64_t>(length));
  const auto needed = static_cast<std::uint64_t>(tokens_per_step(options_, ranks_) / length);
  if (samples < needed) {
    throw core::DataError(fmt::format(
        "{}: one step needs {} samples of {} tokens, the training split has {}: use more "
        "data, a smaller --batch-size-per-rank or a shorter --sequence-length",
        options_.data.source, needed, length + 1, samples));
  }
}

void check_data(const DataSources& sources, const TrainOptions& options,
                const comm::Topology& topology) {
  DataCheck(sources, options, topology).go_on(Clock::time_point::max());
}

void check_data_together(Session& session, const DataSources& sources, const TrainOptions& options,
                         const std::function<void()>& beat) {
  std::optional<DataCheck> check;
  WaitNews news;
  for (double share = 0; share < 1;) {
    beat();
    agree_on_setup(session, options, [&] {
      if (!check) check.emplace(sources, options, session.communicator().topology());
      check->go_on(Clock::now() + time_of_a_part(options));
    });
    share = least_share(session, options, check->share());
    if (session.is_first_rank() && share < 1) news.tell_now_and_then(share);
  }
}

}  // namespace sidestream::launch

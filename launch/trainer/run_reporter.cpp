#include "launch/trainer/run_reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/warning.hpp"
#include "core/base/write_error.hpp"
#include "core/checkpoint/checkpoint_interval.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/failure.hpp"
#include "launch/reporting/jsonl_file.hpp"
#include "launch/reporting/memory_peak.hpp"
#include "launch/reporting/metrics_file.hpp"
#include "launch/reporting/progress_reporter.hpp"
#include "launch/reporting/rate_meter.hpp"
#include "launch/reporting/tensorboard_writer.hpp"
#include "launch/trainer/ettr_ledger.hpp"
#include "launch/watch/background_task.hpp"
#include "profiling/ranges/ranges.hpp"
#include "profiling/record/verdict_text.hpp"

namespace sidestream::launch {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kHour = 3600;

// A failure is told after this, also where a dead file system is what has failed.
constexpr std::chrono::milliseconds kLongestLastRecord{3000};

void warn_of_the_end(const std::exception& error) {
  core::print_warning(fmt::format("the end of the run is not recorded: {}", error.what()));
}

}  // namespace

class RunReporter::Impl {
 public:
  Impl(const TrainOptions& options, const RunRecord& record, const Mfu& mfu,
       const TrainingState& start, Calls calls)
      : options_(options),
        record_(record),
        mfu_(mfu),
        paths_(options.run_dir),
        metrics_(paths_.metrics(), start.step),
        events_(paths_.root(), start.step),
        incidents_(paths_.incidents(), AppendedFile::Content::kLines),
        progress_({.total_steps = options.steps}),
        meter_(options.steps),
        calls_(std::move(calls)),
        tokens_per_step_(tokens_per_step(options, record.world_size)) {
    for (AppendedFile* file : files()) file->guard_opening(calls_.hold_folder);
    tell_damage();
    write_run_record(record_, paths_.run_json());
  }

  void info(const std::string& line) { progress_.info(line); }

  void started(const TrainingState& state, double restore_s) {
    ledger_.emplace(paths_.ettr(), EttrLedger::StartName::of_this_process(), sums_of(state),
                    restore_s);
    ledger_->file().guard_opening(calls_.hold_folder);
  }
  void evaluated(double seconds) { sums_.evaluation_s += seconds; }
  void waited_for_save(double seconds) { sums_.stall_s += seconds; }

  void numbers(const StepNumbers& numbers) {
    if (!numbers.news.empty()) progress_.info(numbers.news);
    if (waiting_ && waiting_->metrics.step == numbers.step) write(*waiting_, numbers);
    waiting_.reset();
  }

  void step(const TrainingState& state, const StepOutcome& outcome,
            std::optional<double> val_loss) {
    if (ledger_) ledger_->progress(sums_of(state), EttrLedger::When::kEveryFewSeconds);
    write(state, outcome, val_loss);
    for (AppendedFile* file : files()) tell_news_of(*file);
  }

  void target_reached(const TrainingState& state, double val_loss) {
    record_.time_to_target_s = state.spent_s();
    progress_.info(fmt::format(
        "validation loss {:.4f} reached the target {:.4f} at step {} after {:.1f} s of training",
        val_loss, *options_.evaluation.target_val_loss, state.step, state.spent_s()));
  }

  void target_missed(const TrainingState& state) {
    const std::string last = record_.last_val_loss
                                 ? fmt::format("it was {:.4f} last", *record_.last_val_loss)
                                 : "it was not measured";
    progress_.info(
        fmt::format("the target was not reached: {} steps, and the validation loss is not {:.4f} "
                    "or less ({})",
                    state.step, *options_.evaluation.target_val_loss, last));
  }

  void verdict(const std::optional<record::RunVerdict>& verdict) {
    if (!verdict) return;
    if (verdict->is_known()) record_.verdict = verdict;
    for (const std::string& line : record::lines_of(*verdict)) progress_.info(line);
  }

  void graph_used(const GraphUse& use) {
    record_.cuda_graph = use;
    progress_.info(fmt::format(
        "CUDA graph: {} steps were replayed, {} ran without it; captured {} in {:.2f} s",
        use.replayed_steps, use.eager_steps,
        use.captures == 1 ? "once" : fmt::format("{} times", use.captures), use.capture_s));
  }

  void saved(const SavedCheckpoint& saved) {
    metrics_.file().sync();
    if (ledger_) ledger_->progress(sums_, EttrLedger::When::kNow);
    note_save(saved);
    progress_.info(fmt::format("saved checkpoint of step {} (training waited {:.3f} s of {:.3f} s)",
                               saved.state.step, saved.stall_s, saved.total_s));
  }

  void incident(const nlohmann::ordered_json& incident) { append_json_line(incidents_, incident); }

  void rewind(const TrainingState& state) {
    waiting_.reset();
    try {
      metrics_.rewind(state.step);
      tell_damage();
    } catch (const std::exception& error) {
      progress_.warn(fmt::format("{}: the steps after {} stay in it, and are there twice",
                                 error.what(), state.step));
    }
    events_.rewind(state.step);
  }

  void finish(core::ExitCode code, const TrainingState& state) {
    progress_.finish();
    if (calls_.hold_folder) calls_.hold_folder();
    const bool went_well = code == core::ExitCode::kDone || code == core::ExitCode::kPreempted;
    std::optional<core::WriteError> lost = write_what_waits();
    if (went_well && lost) code = lost->code();
    account_for_time(code, state);
    record_.exit_code = static_cast<int>(code);
    record_.wall_s = std::chrono::duration<double>(Clock::now() - started_).count();
    record_.last_step = state.step;
    if (!samples_.empty()) record_.performance = summarise(samples_, tokens_per_step_);
    remark_on_mfu();
    // Of a run that failed, the last lines are those that say why.
    if (went_well && record_.memory) progress_.info(describe(*record_.memory));
    write_run_record(record_, paths_.run_json());
    if (!lost) lost = write_what_waits();  // of the account
    if (lost) throw core::WriteError(*lost);
  }

 private:
  struct Line {
    StepMetrics metrics;
    Importance importance;
  };

  void write(const TrainingState& state, const StepOutcome& outcome,
             std::optional<double> val_loss) {
    meter_.add(state.step,
               {.samples = static_cast<std::int64_t>(state.samples_per_step),
                .tokens = tokens_per_step_,
                .batch_s = static_cast<double>(outcome.step_ns) * 1e-9,
                .reader_s = static_cast<double>(outcome.reader_ns) * 1e-9},
               Clock::now());
    if (!outcome.news.empty()) progress_.info(outcome.news);
    const StepNumbers* const own = outcome.numbers_of(state.step);
    if (own == nullptr || own->updated)  // others say nothing about the usual step
      samples_.push_back({outcome.step_ns, outcome.exposed_comm_ns, outcome.reader_ns});
    if (val_loss) record_.last_val_loss = val_loss;
    const bool last = state.step == options_.steps || outcome.stop_requested;
    const bool due = options_.log_every > 0 && state.step % options_.log_every == 0;
    if (!due && !last && !val_loss) return;
    const bool first = samples_.size() == 1;
    const Line line{
        .metrics = metrics_of(state, outcome, val_loss),
        .importance = first || last || val_loss ? Importance::kAlways : Importance::kNormal};
    if (own != nullptr) return write(line, *own);
    waiting_ = line;
  }

  void write(Line line, const StepNumbers& numbers) {
    const ranges::ScopedRange range(ranges::Phase::kLog);
    line.metrics.loss = numbers.loss;
    line.metrics.grad_norm = numbers.grad_norm;
    if (numbers.loss_scale) {
      line.metrics.loss_scale = numbers.loss_scale->scale;
      line.metrics.left_out = static_cast<std::int64_t>(numbers.loss_scale->left_out);
    }
    metrics_.write(line.metrics);
    events_.write(line.metrics);
    progress_.update(line.metrics, line.importance);
  }

  std::vector<AppendedFile*> files() {
    std::vector<AppendedFile*> all = {&incidents_, &metrics_.file(), &events_.file()};
    if (ledger_) all.push_back(&ledger_->file());
    return all;
  }

  // A last time; what is lost for good.
  std::optional<core::WriteError> write_what_waits() {
    std::optional<core::WriteError> lost;
    for (AppendedFile* file : files()) {
      if (!file->trouble()) continue;
      file->sync();
      if (file->trouble()) lost = file->trouble();
    }
    return lost;
  }

  void tell_news_of(AppendedFile& file) {
    const std::optional<std::string> news = file.news();
    if (!news) return;
    if (file.trouble()) return progress_.warn(*news);
    progress_.info(*news);
  }

  void tell_damage() {
    if (!metrics_.damage().empty()) progress_.warn(metrics_.damage());
  }

  EttrLedger::Sums sums_of(const TrainingState& state) {
    sums_.step = state.step;
    sums_.training_s = state.training_s;
    return sums_;
  }

  void note_save(const SavedCheckpoint& saved) {
    ++saves_;
    longest_stall_s_ = std::max(longest_stall_s_, saved.stall_s);
    longest_save_s_ = std::max(longest_save_s_, saved.total_s);
  }

  // What is told at the end of every run: where the time went, and how often to save.
  void account_for_time(core::ExitCode code, const TrainingState& state) {
    if (!ledger_) return;
    ledger_->finished(sums_of(state), static_cast<int>(code));
    try {
      const FoundAccount found = ledger_->account();
      for (const std::string& fault : found.faults) progress_.warn(fault);
      record_.ettr = found.account;
    } catch (const core::Error& error) {
      return progress_.warn(fmt::format("no account of the time: {}", error.what()));
    }
    if (record_.ettr) progress_.info(describe(*record_.ettr));
    if (saves_ == 0 || samples_.empty()) return;
    const double step_s = summarise(samples_, tokens_per_step_).step_ms_p50 * 1e-3;
    const std::optional<double> seen_mtbf_s = record_.ettr ? record_.ettr->mtbf_s() : std::nullopt;
    const double mtbf_s = seen_mtbf_s.value_or(kHour);
    const double interval_s =
        checkpoint::advised_interval_s(longest_stall_s_, longest_save_s_, mtbf_s);
    progress_.info(fmt::format(
        "a save holds training up for {:.3f} s: with {} --checkpoint-every {} loses least ({})",
        longest_stall_s_,
        seen_mtbf_s ? fmt::format("a failure every {:.0f} s, as seen,", mtbf_s)
                    : std::string("a failure every hour"),
        std::max<std::int64_t>(1, std::llround(interval_s / step_s)),
        interval_s > longest_save_s_
            ? std::string("Young")
            : fmt::format("a save takes {:.1f} s until the next one can begin", longest_save_s_)));
  }

  void remark_on_mfu() {
    if (!record_.performance) return;
    const std::string remark = mfu_.remark(record_.performance->tokens_per_s);
    if (!remark.empty()) progress_.info(remark);
  }

  std::optional<std::int64_t> memory_peak_bytes() {
    const auto on_device = calls_.device_memory ? calls_.device_memory() : std::nullopt;
    const auto peak = on_device ? on_device : memory_.sample();
    if (record_.memory) record_.memory->peak_bytes = peak;
    return peak;
  }

  // Without the numbers.
  StepMetrics metrics_of(const TrainingState& state, const StepOutcome& outcome,
                         std::optional<double> val_loss) {
    const Rates rates = meter_.take();
    return {.step = state.step,
            .epoch = static_cast<std::int64_t>(outcome.epoch),
            .lr = outcome.lr,
            .batch_cost_s = rates.batch_cost_s,
            .reader_cost_s = rates.reader_cost_s,
            .samples_per_s = rates.samples_per_s,
            .tokens_per_s = rates.tokens_per_s,
            .mfu = mfu_.at(rates.tokens_per_s),
            .memory_bytes = memory_peak_bytes(),
            .eta_s = meter_.eta_s(),
            .val_loss = val_loss};
  }

  const TrainOptions options_;
  RunRecord record_;
  Mfu mfu_;
  checkpoint::RunPaths paths_;
  MetricsWriter metrics_;
  TensorBoardWriter events_;
  AppendedFile incidents_;
  ProgressReporter progress_;
  RateMeter meter_;
  MemoryPeak memory_;
  Calls calls_;
  std::optional<EttrLedger> ledger_;  // once training has begun
  EttrLedger::Sums sums_;
  std::int64_t saves_ = 0;
  double longest_stall_s_ = 0;
  double longest_save_s_ = 0;
  std::int64_t tokens_per_step_;
  std::vector<StepSample> samples_;
  std::optional<Line> waiting_;  // for the numbers of its step
  Clock::time_point started_ = Clock::now();
};

RunReporter::RunReporter() = default;
RunReporter::RunReporter(const TrainOptions& options, const RunRecord& record, const Mfu& mfu,
                         const TrainingState& start, Calls calls)
    : impl_(std::make_unique<Impl>(options, record, mfu, start, std::move(calls))) {}
RunReporter::RunReporter(RunReporter&&) noexcept = default;
RunReporter& RunReporter::operator=(RunReporter&&) noexcept = default;
RunReporter::~RunReporter() = default;

void RunReporter::info(const std::string& line) {
  if (impl_) impl_->info(line);
}
void RunReporter::numbers(const StepNumbers& numbers) {
  if (impl_) impl_->numbers(numbers);
}
void RunReporter::step(const TrainingState& state, const StepOutcome& outcome,
                       std::optional<double> val_loss) {
  if (impl_) impl_->step(state, outcome, val_loss);
}
void RunReporter::target_reached(const TrainingState& state, double val_loss) {
  if (impl_) impl_->target_reached(state, val_loss);
}
void RunReporter::target_missed(const TrainingState& state) {
  if (impl_) impl_->target_missed(state);
}
void RunReporter::started(const TrainingState& state, double restore_s) {
  if (impl_) impl_->started(state, restore_s);
}
void RunReporter::evaluated(double seconds) {
  if (impl_) impl_->evaluated(seconds);
}
void RunReporter::waited_for_save(double seconds) {
  if (impl_) impl_->waited_for_save(seconds);
}
void RunReporter::saved(const SavedCheckpoint& saved) {
  if (impl_) impl_->saved(saved);
}
void RunReporter::incident(const nlohmann::ordered_json& incident) {
  if (impl_) impl_->incident(incident);
}
void RunReporter::rewind(const TrainingState& state) {
  if (impl_) impl_->rewind(state);
}
void RunReporter::verdict(const std::optional<record::RunVerdict>& verdict) {
  if (impl_) impl_->verdict(verdict);
}
void RunReporter::graph_used(const GraphUse& use) {
  if (impl_) impl_->graph_used(use);
}
void RunReporter::finish(core::ExitCode code, const TrainingState& state) {
  if (impl_) impl_->finish(code, state);
}
void RunReporter::finish_failed(const std::exception& failure,
                                const TrainingState& state) noexcept {
  if (!impl_) return;
  const core::ExitCode code = describe_failure(failure).code;
  try {
    BackgroundTask writing;  // its files are closed by its thread, too
    writing.start([impl = std::shared_ptr<Impl>(std::move(impl_)), code, state] {
      impl->finish(code, state);
    });
    if (writing.finish_within(kLongestLastRecord)) return;
    throw core::Error(fmt::format("run.json: not finished after {} ms, its file system hangs",
                                  kLongestLastRecord.count()));
  } catch (const core::WriteError& error) {
    if (std::string_view(failure.what()).find(error.reason()) != std::string_view::npos) return;
    warn_of_the_end(error);
  } catch (const std::exception& error) {
    if (std::string_view(failure.what()).find(error.what()) != std::string_view::npos) return;
    warn_of_the_end(error);
  }
}

}  // namespace sidestream::launch

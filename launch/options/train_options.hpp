// Everything that `sidestream train` can be told, as one value: defaults < config file < --baseline
// < command line.
//
// The parser (parse_train_options) fills it and validates it; launch/assembly turns it into
// strategy objects. Names of members follow the flags.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/factory.hpp"
#include "core/faults/fault.hpp"
#include "launch/options/numerics_options.hpp"
#include "launch/options/record_options.hpp"
#include "model/config.hpp"
#include "parallel/config.hpp"

namespace sidestream::launch {

enum class Precision { kFp32, kTf32, kBf16, kFp16 };
enum class Device { kAuto, kCpu, kCuda };
enum class Ranges { kSteps, kLayers };
enum class Toggle { kAuto, kOn, kOff };  // kAuto: on where the device has it

struct DataOptions {
  std::string source = "";               // --data: folder with shards, or "synthetic"
  std::filesystem::path tokenizer = {};  // --tokenizer: default is the data folder's own
  std::int64_t sequence_length = 0;      // 0: the model's context
  std::int64_t batch_size_per_rank = 8;
  bool shuffle = true;
  bool fix_batch = false;
  int loader_workers = 1;  // 0: the training thread reads
  int prefetch = 4;        // batches ahead of the step
  bool pin_memory = true;  // on a GPU: batches in memory that copy engines read
};

struct ModelOptions {
  std::string preset = "gpt2-124m";
  model::ModelConfig config =
      {};  // preset with the overrides applied; vocab_size 0 until data is known
  // What only GPUs have. In `config` is what is known to hold: kAuto is settled on the device
  // (launch/device/gpu_operators).
  Toggle packed_attention = Toggle::kAuto;
  Toggle tune_products = Toggle::kAuto;
  bool vocab_size_given = false;
  std::int64_t pad_vocab = 1;       // round the embedding's rows up to a multiple
  std::filesystem::path init = {};  // checkpoint folder to start from
};

struct ScheduleOptions {
  double lr = 6e-4;
  double min_lr_ratio = 0.1;
  std::string kind = "cosine";  // constant | linear | cosine | wsd
  std::int64_t warmup_steps = 0;
};

struct DynamicLossScale {
  friend bool operator==(const DynamicLossScale&, const DynamicLossScale&) = default;
};

// With --precision fp16; empty: not given.
struct LossScaleOptions {
  std::optional<std::variant<DynamicLossScale, double>> scale = {};
  std::optional<std::int64_t> interval = {};

  bool is_given() const noexcept { return scale.has_value() || interval.has_value(); }
  // Empty: dynamic, whether that was said or not.
  std::optional<double> fixed() const {
    const double* const number = scale ? std::get_if<double>(&*scale) : nullptr;
    return number != nullptr ? std::optional(*number) : std::nullopt;
  }
};

struct EvaluationOptions {
  std::int64_t every = 0;  // 0: never
  std::int64_t tokens = 1 << 17;
  std::optional<double> target_val_loss = {};
};

struct CheckpointOptions {
  std::int64_t every = 0;       // 0: only at the end
  int keep = 2;                 // 0: all
  bool asynchronous = true;     // write a copy while training goes on
  std::string resume = "none";  // none | auto | path of a checkpoint or run directory

  // Whether a run from one step to another saves before its end.
  bool saves_between(std::int64_t first_step, std::int64_t last_step) const noexcept {
    return every > 0 && (first_step / every + 1) * every < last_step;
  }
};

struct Timeouts {
  std::chrono::milliseconds setup{std::chrono::minutes(5)};
  std::chrono::milliseconds step{std::chrono::minutes(3)};
  std::chrono::milliseconds checkpoint{std::chrono::minutes(10)};
  std::chrono::milliseconds evaluation{std::chrono::minutes(10)};
};

struct TrainOptions {
  std::filesystem::path run_dir = "runs/default";
  bool dry_run = false;
  bool print_config = false;
  bool baseline = false;
  std::int64_t steps = 100;
  std::uint64_t seed = 1337;
  bool deterministic = false;
  Precision precision = Precision::kFp32;
  LossScaleOptions loss_scale = {};
  Device device = Device::kAuto;
  std::optional<int> threads = {};  // intra-op, of a rank; empty: the rank's share of the cores
  bool pin_threads = true;          // ranks that share cores each take their part of them
  bool keep_memory = true;          // what steps free stays in the process
  bool late_loss = true;            // on a GPU: a step's loss is read while the next one runs
  bool flush_denormals = true;
  bool cuda_graph = false;  // on a GPU: steps are captured once and replayed
  Ranges ranges = Ranges::kSteps;
  std::int64_t log_every = 1;

  DataOptions data = {};
  ModelOptions model = {};
  // The parameter dtype: from `precision`, in launch/assembly; so is the rounding seed.
  parallel::DataParallelConfig parallel = {.state_sharing = parallel::StateSharing::kAuto};
  ScheduleOptions schedule = {};
  EvaluationOptions evaluation = {};
  CheckpointOptions checkpoint = {};
  comm::CommunicatorConfig comm = {};  // its deadlines: from `timeouts`, in launch/assembly
  Timeouts timeouts = {};
  RecordOptions record = {};
  NumericsOptions numerics = {};
  std::vector<faults::Fault> faults = {};  // --inject: planted for a test
  std::string faults_text = {};            // the same as it was written
};

}  // namespace sidestream::launch

#include "launch/options/train_parser.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/multiple.hpp"
#include "launch/options/command_line.hpp"
#include "launch/options/config_file.hpp"
#include "launch/options/exit_codes.hpp"
#include "launch/options/given_layers.hpp"
#include "launch/options/offload.hpp"
#include "launch/options/toggle_lattice.hpp"
#include "launch/options/train_settings.hpp"
#include "model/draws_again.hpp"

namespace sidestream::launch {
namespace {

GivenLayers layers_of(const std::vector<std::string>& arguments,
                      const std::vector<FlagGroup>& flags) {
  const std::vector<Given> command_line =
      parse_command_line(arguments, flags, {.command = "train"});
  GivenLayers layers;
  bool baseline = false;
  for (const Given& given : command_line) {
    if (given.name == "config") layers.add(Layer::kFile, read_config_file(given.value, flags));
    if (given.name == "baseline") baseline = given.value == "on";
  }
  if (baseline) {
    layers.add(Layer::kBaseline, baseline_values());
    for (const std::string& name : left_to_defaults()) layers.erase(name);
  }
  layers.add(Layer::kCommandLine, command_line);
  settle_toggles(layers);
  return layers;
}

void check_model(const TrainOptions& options) {
  model::ModelConfig config = options.model.config;
  if (config.vocab_size == 0) {  // not known before the data is: any legal value will do
    config.vocab_size = config.padded_vocab_size = model::preset(options.model.preset).vocab_size;
  }
  config.validate();
  if (options.data.sequence_length > config.context_length) {
    throw core::ConfigError(
        fmt::format("--sequence-length: expected at most {}, the context of {}, found {}",
                    config.context_length, options.model.preset, options.data.sequence_length));
  }
}

void require_precision_of_processor(Precision precision) {
  if (precision == Precision::kTf32) {
    throw core::ConfigError(
        "--precision tf32 is a mode of GPUs: on the processor use fp32 or bf16");
  }
  if (precision == Precision::kFp16) {
    throw core::ConfigError(
        "--precision fp16 is for GPUs: on the processor use bf16, which needs no loss scale and "
        "has "
        "faster operators");
  }
}

void check_precision(const TrainOptions& options) {
  if (options.device == Device::kCpu) require_precision_of_processor(options.precision);
  const LossScaleOptions& scale = options.loss_scale;
  if (options.precision == Precision::kFp16) {
    if (options.parallel.reduce_dtype == core::DType::kBFloat16)
      throw core::ConfigError(
          "--reduce-dtype bf16 would lose digits of --precision fp16: gradients travel as fp16, or "
          "with --reduce-dtype fp32 as fp32");
    if (scale.fixed() && scale.interval)
      throw core::ConfigError(
          "--loss-scale-interval is of a dynamic loss scale: leave it out, or say --loss-scale "
          "dynamic");
    return;
  }
  if (!scale.is_given()) return;
  throw core::ConfigError(
      "--loss-scale and --loss-scale-interval are for --precision fp16: the gradients of the other "
      "precisions need no scale");
}

void refuse_packed_attention(const TrainOptions& options) {
  if (options.model.config.packed_attention)
    throw core::ConfigError(
        "--packed-attention on is for GPUs, in --precision bf16 or fp16: elsewhere leave it out");
}

void refuse_tuned_products(const TrainOptions& options) {
  if (options.model.config.tune_products)
    throw core::ConfigError(
        "--tune-products on is for GPUs, in --precision bf16 or fp16: elsewhere leave it out");
}

void refuse_operators_of_gpus(const TrainOptions& options) {
  refuse_packed_attention(options);
  refuse_tuned_products(options);
}

void check_operators_of_gpus(const TrainOptions& options) {
  if (options.model.config.tune_products && options.deterministic)
    throw core::ConfigError(
        "--tune-products on and --deterministic exclude each other: which algorithm is the fastest "
        "can differ from run to run, and the last bits with it; leave one of them out");
  const bool wide = options.precision == Precision::kFp32 || options.precision == Precision::kTf32;
  if (wide || options.device == Device::kCpu) refuse_operators_of_gpus(options);
}

// What is known without a device.
void check_cuda_graph(const TrainOptions& options) {
  const auto refuse = [](const std::string& with, const std::string& why) {
    throw core::ConfigError(
        fmt::format("--cuda-graph on and {} exclude each other: {}", with, why));
  };
  if (!options.cuda_graph) return;
  if (options.device == Device::kCpu)
    refuse("--device cpu", "a CUDA graph needs a GPU; leave --cuda-graph out");
  if (options.comm.backend == comm::Backend::kMpi)
    refuse("--backend mpi",
           "sums that pass through the host cannot be captured; leave --backend out for NCCL");
  if (const Offload offload = offload_of(options); offload.any())
    refuse("--offload " + offload.text(),
           "copies to and from the host go on from one step into the next, which a graph of one "
           "step cannot hold; leave --offload out to replay steps, or --cuda-graph to have more "
           "memory");
  if (options.parallel.unused_parameters == parallel::UnusedParameters::kAllow)
    refuse("--unused-parameters allow",
           "every replay has the gradients of the step that was captured; leave one of them out");
  if (options.numerics.drops_updates())
    refuse("skip or rollback as --nan-policy or --spike-policy",
           "there the host looks at every step before its update; take stop or warn, or leave "
           "--cuda-graph out");
  if (model::draws_again(options.model.config))
    refuse("--recompute attention or blocks with dropout",
           "what is made again draws from a state of the generator that a graph does not keep; "
           "--dropout 0, or --recompute mlp");
  if (options.comm.check_collectives)
    refuse(
        "--check-collectives",
        "a replay makes no calls that could be compared; leave --cuda-graph out to compare them, "
        "steps make the same ones without it");
}

}  // namespace

void refuse_what_needs_a_gpu(const TrainOptions& options) {
  require_precision_of_processor(options.precision);
  refuse_offload_on_processor(options);
  refuse_operators_of_gpus(options);
  if (options.cuda_graph)
    throw core::ConfigError(
        "--cuda-graph on: a CUDA graph needs a GPU, and this rank has none: leave --cuda-graph "
        "out");
}

TrainOptions parse_train_options(int argc, const char* const* argv) {
  return parse_train_options(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}

TrainOptions parse_train_options(const std::vector<std::string>& arguments) {
  const SettingTable<TrainOptions> table = train_settings();
  const GivenLayers layers = layers_of(arguments, flags_of(table));
  TrainOptions options;
  options.model.config = model::preset(options.model.preset);
  apply(table, layers.resolved(), options);
  if (!options.model.vocab_size_given) options.model.config.vocab_size = 0;
  if (options.model.vocab_size_given) set_vocabulary(options, options.model.config.vocab_size);
  if (!options.print_config) validate(options);
  return options;
}

void validate(const TrainOptions& options) {
  if (options.data.source.empty()) {
    throw core::ConfigError(
        "--data is missing: give a folder with token shards (made by `sidestream prepare`), or "
        "'synthetic'");
  }
  check_model(options);
  options.parallel.validate();
  if (options.evaluation.target_val_loss && options.evaluation.every == 0) {
    throw core::ConfigError("--target-val-loss needs evaluations: add --eval-every STEPS");
  }
  if (options.evaluation.target_val_loss && options.data.source == "synthetic") {
    throw core::ConfigError(
        "--target-val-loss needs a validation split, and synthetic data has none: --data FOLDER");
  }
  if (options.device == Device::kCpu && options.comm.backend == comm::Backend::kNccl) {
    throw core::ConfigError(
        "--device cpu and --backend nccl exclude each other: NCCL works on GPU memory");
  }
  check_precision(options);
  if (options.device == Device::kCpu) refuse_offload_on_processor(options);
  check_cuda_graph(options);
  check_operators_of_gpus(options);
  const RecordOptions& record = options.record;
  if (!record.profile &&
      (record.shapes || record.memory || record.stacks || record.flops || record.wants_modules())) {
    throw core::ConfigError(
        "--profile-shapes, -memory, -stacks, -flops and -modules say what --profile writes: add "
        "--profile wait=1,warmup=1,active=3");
  }
  const std::string& resume = options.checkpoint.resume;
  if (!options.model.init.empty() && resume != "none" && resume != "auto") {
    throw core::ConfigError(
        "--init and --resume PATH exclude each other: both say where the weights come from");
  }
}

void set_vocabulary(TrainOptions& options, std::int64_t vocab_size) {
  model::ModelConfig& config = options.model.config;
  if (options.model.vocab_size_given && config.vocab_size < vocab_size) {
    throw core::ConfigError(
        fmt::format("--vocab-size: expected at least {}, what the data needs, found {}", vocab_size,
                    config.vocab_size));
  }
  if (!options.model.vocab_size_given) config.vocab_size = vocab_size;
  config.padded_vocab_size = core::rounded_up(config.vocab_size, options.model.pad_vocab);
}

std::int64_t sequence_length(const TrainOptions& options) {
  return options.data.sequence_length > 0 ? options.data.sequence_length
                                          : options.model.config.context_length;
}

std::string config_text(const TrainOptions& options) {
  std::string text = "# Every setting of this run. To repeat it: sidestream train --config FILE\n";
  for (const SettingGroup<TrainOptions>& group : train_settings()) {
    text += fmt::format("\n# {}\n", group.title);
    for (const Setting<TrainOptions>& setting : group.settings) {
      if (setting.flag.scope == FlagScope::kCommandLine) continue;
      const std::optional<std::string> value = setting.get(options);
      if (!value)
        text += fmt::format("# {} = {}  # not set: {}\n", setting.flag.name,
                            setting.flag.value_name, setting.flag.help);
      else
        text += fmt::format("{} = {}\n", setting.flag.name, config_value_text(*value));
    }
  }
  return text;
}

std::vector<FlagGroup> train_flags() { return flags_of(train_settings()); }

std::string train_help(int width_columns) {
  return "Trains a model, alone or as one of several ranks under mpirun.\n\n"
         "  sidestream train --model gpt2-mini --data data/corpus --steps 200 --run-dir runs/a\n"
         "  launch/run -np 2 -- train --config examples/gpt2-mini/train.cfg --run-dir runs/b "
         "--baseline\n\n"
         "Settings hold in this order: defaults, --config file, --baseline, command line. [..] is "
         "the default.\n\n" +
         flags_help(train_flags(), width_columns) + "\n" + kExitCodes;
}

}  // namespace sidestream::launch

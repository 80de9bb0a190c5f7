// Steps of a training on a GPU, put together as a run does. Ranks may share one GPU.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/offload_assembly.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "launch/device/device_session.hpp"
#include "launch/device/gpu_operators.hpp"
#include "launch/options/train_parser.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::launch {

inline std::unique_ptr<comm::Communicator> make_gpu_communicator() {
  comm::CommunicatorConfig config{.backend = comm::Backend::kNccl,
                                  .device = comm::DeviceWish::kCuda,
                                  .gpu_sharing = comm::GpuSharing::kAllowed};
  comm::choose_device(config);
  std::vector<std::string> warnings;
  return comm::make_communicator(test::mpi_environment(), config, warnings);
}

// A tiny model on synthetic tokens, where these flags say nothing else.
inline TrainOptions gpu_options(const std::vector<std::string>& flags) {
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"--model", "gpt2-tiny"},    {"--data", "synthetic"},
      {"--sequence-length", "32"}, {"--batch-size-per-rank", "4"},
      {"--steps", "1000"},         {"--log-every", "0"},
      {"--device", "cuda"}};
  std::vector<std::string> words = flags;
  for (const auto& [name, value] : usual) {
    if (std::find(flags.begin(), flags.end(), name) != flags.end()) continue;
    words.insert(words.end(), {name, value});
  }
  return parse_train_options(words);
}

class GpuSteps {
 public:
  explicit GpuSteps(TrainOptions chosen)
      : options(std::move(chosen)),
        sources(open_data(options)),
        communicator(make_gpu_communicator()),
        device(*communicator, options),
        model(initialised()),
        replicas(*model, *communicator, data_parallel_config(options)),
        loader(make_loader(sources, options, communicator->topology(), {},
                           loader_memory(options, device))),
        steps(make_stepper({.model = *model,
                            .replicas = replicas,
                            .loader = *loader,
                            .communicator = *communicator},
                           {.seed = 1,
                            .grad_accumulation = options.parallel.grad_accumulation,
                            .sequence_length = sequence_length(options),
                            .schedule = schedule_config(options),
                            .loss_scale = data_parallel_config(options).loss_scale},
                           options, device)) {
    model->expect_loss_scale(replicas.loss_scale());
    offload_residuals(*model, options, device);
  }

  void run(std::int64_t first, std::int64_t last) {
    for (std::int64_t step = first; step <= last; ++step) steps->run(step, [] { return false; });
  }

  TrainOptions options;
  DataSources sources;
  std::unique_ptr<comm::Communicator> communicator;
  DeviceSession device;
  std::shared_ptr<model::LanguageModel> model;
  parallel::DataParallel replicas;
  std::unique_ptr<data::Loader> loader;
  std::unique_ptr<Stepper> steps;

 private:
  std::shared_ptr<model::LanguageModel> initialised() {
    set_vocabulary(options, sources.vocab_size);
    settle_gpu_operators(options, device.on_gpu());
    auto made = model::make_language_model(options.model.config);
    made->initialise(1);
    made->to(device.device());
    return made;
  }
};

}  // namespace sidestream::launch

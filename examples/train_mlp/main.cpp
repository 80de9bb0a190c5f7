// A module and a training loop of one's own on Sidestream's data-parallel library.
//
//   launch/run -np 2 --program build/release/examples/train_mlp -- [steps [folder]]
//
// The task: tell on which of two interleaved spirals a point lies. Every rank draws its own points;
// the gradients are reduced while backward goes on, and the fused optimizer updates all parameters
// in one pass. With a folder the run saves checkpoints there, every 100 steps and when it is
// stopped (Ctrl-C), and the next start goes on from the last one, with any number of ranks.
//
// On GPUs: give run_program a CommunicatorConfig with device = DeviceWish::kCuda, on which
// choose_device() was called; then move the model, before DataParallel is made, and every sample to
// torch::Device(torch::kCUDA, *ranks.device()).

#include <fmt/format.h>

#include <cstdlib>
#include <numbers>
#include <optional>

#include <torch/torch.h>

#include "core/base/random_bits.hpp"
#include "launch/process/program.hpp"
#include "launch/process/tuning.hpp"
#include "launch/trainer/module_checkpoint.hpp"
#include "launch/trainer/program_guard.hpp"
#include "parallel/data_parallel.hpp"

namespace launch = sidestream::launch;
namespace parallel = sidestream::parallel;
using sidestream::core::ExitCode;

namespace {

struct Classifier : torch::nn::Module {
  Classifier() {
    input = register_module("input", torch::nn::Linear(2, 64));
    hidden = register_module("hidden", torch::nn::Linear(64, 64));
    output = register_module("output", torch::nn::Linear(64, 2));
  }
  torch::Tensor forward(const torch::Tensor& points_b2) {
    return output(torch::tanh(hidden(torch::tanh(input(points_b2)))));
  }
  torch::nn::Linear input{nullptr}, hidden{nullptr}, output{nullptr};
};

struct Sample {
  torch::Tensor points_b2;
  torch::Tensor labels_b;
};

Sample draw_spirals(int64_t count) {
  const torch::Tensor labels_b = torch::randint(0, 2, {count}, torch::kInt64);
  const torch::Tensor radius_b = torch::rand({count});
  const torch::Tensor angle_b = radius_b * 7.0 + labels_b * std::numbers::pi;
  return {torch::stack({radius_b * torch::cos(angle_b), radius_b * torch::sin(angle_b)}, 1),
          labels_b};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 300;
  const char* folder = argc > 2 ? argv[2] : nullptr;
  return launch::run_program(argc, argv, {}, [=](launch::Session& session) {
    auto& ranks = session.communicator();
    launch::pin_and_set_threads(ranks, {});
    torch::manual_seed(1);
    Classifier model;  // rank 0's parameters go to all ranks
    parallel::DataParallel replicas(model, ranks, {.optimizer = {.weight_decay = 0.0}});
    std::optional<launch::ModuleCheckpoint> checkpoint;
    std::optional<launch::ProgramGuard> guard;  // says who hangs, and leaves records of it
    if (folder != nullptr) {
      guard.emplace(session, folder);
      checkpoint.emplace(folder, ranks, model, replicas,
                         launch::ModuleCheckpointOptions{.heartbeat = guard->heartbeat()});
      checkpoint->restore();  // steps_taken() says how far the run was
    }

    for (int64_t step = replicas.steps_taken() + 1; step <= steps; ++step) {
      if (guard) guard->beat(step);
      if (session.any_stop_requested()) {  // Ctrl-C
        if (checkpoint) checkpoint->save();
        return ExitCode::kPreempted;
      }
      // Other points on every rank and in every step, also where a restart has other ranks; for as
      // many, the same ones.
      torch::manual_seed(sidestream::core::mix_bits(static_cast<uint64_t>(step),
                                                    static_cast<uint64_t>(ranks.rank())));
      const Sample sample = draw_spirals(256);
      replicas.begin_micro_step(0);
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(model.forward(sample.points_b2), sample.labels_b);
      loss.backward();
      replicas.finish_backward();
      const auto done = replicas.update(3e-3);
      if (session.is_first_rank() && step % 50 == 0) {
        fmt::print("step {} loss {:.4f} grad_norm {:.3f}\n", step, loss.item<double>(),
                   done.grad_norm);
      }
      if (checkpoint && step % 100 == 0) checkpoint->save();
    }

    const torch::NoGradGuard no_grad;
    torch::manual_seed(0);
    const Sample test = draw_spirals(4096);
    const auto hits = model.forward(test.points_b2).argmax(1).eq(test.labels_b).to(torch::kFloat64);
    if (session.is_first_rank()) fmt::print("accuracy {:.3f}\n", hits.mean().item<double>());
    replicas.check_replicas();
    return ExitCode::kDone;
  });
}

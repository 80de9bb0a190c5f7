// Tokens per second of forward and backward of one model on one process, fused and plain, fp32 and
// bf16.
//   bench_model_step [preset] [batch] [time] [repeats] [fp32|bf16|autocast] [on|off] [threads]
#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/profiler.h>

#include "model/language_model.hpp"

namespace {

using namespace sidestream::model;

struct Options {
  std::string preset = "gpt2-mini", precision = "fp32", fused = "on";
  std::int64_t batch = 16, time = 256, repeats = 5, threads = 1;
};

Options parse(int argc, char** argv) {
  Options o;
  if (argc > 1) o.preset = argv[1];
  if (argc > 2) o.batch = std::atoll(argv[2]);
  if (argc > 3) o.time = std::atoll(argv[3]);
  if (argc > 4) o.repeats = std::atoll(argv[4]);
  if (argc > 5) o.precision = argv[5];
  if (argc > 6) o.fused = argv[6];
  if (argc > 7) o.threads = std::atoll(argv[7]);
  return o;
}

// Of this process, so that a busy machine does not spoil the number; the wall clock with more than
// one thread.
double now_s(std::int64_t threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of_a_step(LanguageModel& model, const torch::Tensor& x, const torch::Tensor& y) {
  for (torch::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
  const double start_s = now_s(at::get_num_threads());
  model.loss(x, y).backward();
  at::autocast::clear_cache();
  return now_s(at::get_num_threads()) - start_s;
}

void print_profile(LanguageModel& model, const torch::Tensor& x, const torch::Tensor& y) {
  namespace profiler = torch::autograd::profiler;
  using profiler::ProfilerConfig;
  const ProfilerConfig config(torch::profiler::impl::ProfilerState::CPU);
  profiler::enableProfilerLegacy(config);
  seconds_of_a_step(model, x, y);
  std::map<std::string, double> total_us;
  for (const auto& thread : profiler::disableProfilerLegacy()) {
    std::vector<const profiler::LegacyEvent*> open;
    for (const auto& event : thread) {
      if (event.kindStr() == std::string("push")) open.push_back(&event);
      if (event.kindStr() != std::string("pop") || open.empty()) continue;
      const double spent = open.back()->cpuElapsedUs(event);
      total_us[open.back()->name()] += spent;
      open.pop_back();
    }
  }
  for (const auto& [name, us] : total_us) {
    if (us > 2000) std::printf("  %10.1f ms %s\n", us / 1e3, name.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // as the trainer does: large temporaries stay in the process
  mallopt(M_TRIM_THRESHOLD, -1);
  at::globalContext().setFlushDenormal(true);
  const Options o = parse(argc, argv);
  at::set_num_threads(static_cast<int>(o.threads));
  ModelConfig config = preset(o.preset);
  config.fused_ops = o.fused == "on" ? FusedOps::kOn : FusedOps::kOff;
  const auto model = make_language_model(config);
  model->initialise(1);
  if (o.precision == "bf16") model->to(at::kBFloat16);
  if (o.precision == "autocast") {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  const torch::Tensor x = torch::randint(config.vocab_size, {o.batch, o.time}, torch::kLong);
  const torch::Tensor y = torch::randint(config.vocab_size, {o.batch, o.time}, torch::kLong);
  double best = 1e9;
  for (int warm_up = 0; warm_up < 2; ++warm_up) seconds_of_a_step(*model, x, y);
  for (int i = 0; i < o.repeats; ++i) best = std::min(best, seconds_of_a_step(*model, x, y));
  const double tokens = static_cast<double>(o.batch * o.time) / best;
  std::printf("%s B=%ld T=%ld %s fused %s: %.1f ms, %.0f tokens/s, %.0f GFLOP/s\n",
              o.preset.c_str(), o.batch, o.time, o.precision.c_str(), o.fused.c_str(), best * 1e3,
              tokens, tokens * flops_per_token(config, o.time).causal / 1e9);
  if (std::getenv("PROFILE") != nullptr) print_profile(*model, x, y);
}

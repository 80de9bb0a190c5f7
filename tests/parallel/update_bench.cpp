// Times what one rank adds to a step at the size of GPT-2 124M: the copy in the hooks, the norm,
// the update; beside a copy of the same memory, and the update with moments in bf16 in turns with
// the one in fp32. Usage: parallel_update_bench [threads] [fp32|bf16] [on|off]   (on: the fused
// optimizer)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "comm/factory.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::test {
namespace {

constexpr int kRepeats = 7;

class Gpt2Sized : public torch::nn::Module {
 public:
  Gpt2Sized() {
    add("wte", {50257, 768});
    add("wpe", {1024, 768});
    for (int layer = 0; layer < 12; ++layer) {
      const std::string h = "h" + std::to_string(layer) + "_";
      for (const char* name : {"ln1_w", "ln1_b", "ln2_w", "ln2_b", "proj_b", "out_b"})
        add(h + name, {768});
      add(h + "qkv_w", {768, 2304});
      add(h + "qkv_b", {2304});
      add(h + "proj_w", {768, 768});
      add(h + "fc_w", {768, 3072});
      add(h + "fc_b", {3072});
      add(h + "out_w", {3072, 768});
    }
    add("lnf_w", {768});
    add("lnf_b", {768});
  }

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    register_parameter(name, torch::full(shape, 0.01));
  }
};

template <int repeats = kRepeats, typename Work>
double median_ms(const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

void report(const char* what, double ms, double bytes) {
  std::printf("%-28s %8.1f ms  %6.1f GB/s\n", what, ms, bytes / ms * 1e-6);
}

// A gradient that is made outside of what is timed: backward of sum(p * g) hands g over.
torch::Tensor loss_of(Gpt2Sized& net) {
  torch::Tensor total = torch::zeros({}, torch::kFloat32);
  for (const torch::Tensor& parameter : net.parameters())
    total = total + parameter.flatten()[0].to(torch::kFloat32);
  return total;
}

struct Options {
  int threads = 1;
  core::DType dtype = core::DType::kFloat32;
  parallel::OptimizerKernel kernel = parallel::OptimizerKernel::kFused;
};

void measure(comm::Communicator& communicator, const Options& options) {
  at::set_num_threads(options.threads);
  Gpt2Sized net;
  Gpt2Sized bare;
  parallel::DataParallel replicas(net, communicator,
                                  {.parameter_dtype = options.dtype,
                                   .state_sharing = parallel::StateSharing::kAuto,
                                   .optimizer = {.kernel = options.kernel}});
  double elements = 0;
  for (const torch::Tensor& parameter : net.parameters())
    elements += static_cast<double>(parameter.numel());
  const bool low = options.dtype == core::DType::kBFloat16;
  const double gradient_bytes = elements * (low ? 2 : 4);
  if (low) bare.to(torch::kBFloat16);

  const torch::Tensor from = torch::ones({1 << 27});
  const torch::Tensor to = torch::zeros({1 << 27});
  report("copy of 512 MiB (r+w)", median_ms([&] { to.copy_(from); }), 2.0 * (1 << 29));
  const double plain = median_ms([&] {
    for (torch::Tensor& parameter : bare.parameters()) parameter.mutable_grad().reset();
    loss_of(bare).backward();
  });
  std::vector<double> norms;
  const double hooked = median_ms([&] {
    replicas.begin_micro_step(0);
    loss_of(net).backward();
    norms.push_back(median_ms<1>([&] { replicas.finish_backward(); }));
  });
  std::nth_element(norms.begin(), norms.begin() + kRepeats / 2, norms.end());
  const double norm = norms[kRepeats / 2];
  report("copy in the hooks (r+w)", hooked - norm - plain, 2 * gradient_bytes);
  report("norm (r)", norm, gradient_bytes);
  std::vector<double> updates;
  for (int i = 0; i < kRepeats; ++i) {
    replicas.begin_micro_step(0);
    loss_of(net).backward();
    replicas.finish_backward();
    updates.push_back(median_ms<1>([&] { replicas.update(1e-4); }));
  }
  std::nth_element(updates.begin(), updates.begin() + kRepeats / 2, updates.end());
  // fp32: reads g w m v, writes w m v; bf16: g and the copy of w take 2 bytes each. 28 bytes both.
  report("update", updates[kRepeats / 2], elements * 28);
}

// Medians of updates with moments of one type and of the other, one after the other each time.
void measure_moments(comm::Communicator& communicator, const Options& options) {
  constexpr int kRounds = 15;
  const std::vector<core::DType> types = {core::DType::kFloat32, core::DType::kBFloat16};
  std::vector<std::unique_ptr<Gpt2Sized>> nets;
  std::vector<std::unique_ptr<parallel::DataParallel>> replicas;
  for (const core::DType type : types) {
    nets.push_back(std::make_unique<Gpt2Sized>());
    replicas.push_back(std::make_unique<parallel::DataParallel>(
        *nets.back(), communicator,
        parallel::DataParallelConfig{
            .parameter_dtype = options.dtype,
            .state_sharing = parallel::StateSharing::kAuto,
            .optimizer = {.kernel = options.kernel, .state_dtype = type}}));
  }
  std::vector<std::vector<double>> times(types.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      replicas[i]->begin_micro_step(0);
      loss_of(*nets[i]).backward();
      replicas[i]->finish_backward();
      times[i].push_back(median_ms<1>([&] { replicas[i]->update(1e-4); }));
    }
  }
  for (std::vector<double>& own : times)
    std::nth_element(own.begin(), own.begin() + kRounds / 2, own.end());
  double elements = 0;
  for (const torch::Tensor& parameter : nets[0]->parameters())
    elements += static_cast<double>(parameter.numel());
  const double wide = times[0][kRounds / 2], narrow = times[1][kRounds / 2];
  report("update, moments in fp32", wide, elements * 28);
  report("update, moments in bf16", narrow, elements * 20);
  std::printf("bf16 moments take %.2f of the time of fp32 ones\n", narrow / wide);
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc > 1) options.threads = std::atoi(argv[1]);
  if (argc > 2 && std::string(argv[2]) == "bf16") options.dtype = core::DType::kBFloat16;
  if (argc > 3 && std::string(argv[3]) == "off")
    options.kernel = parallel::OptimizerKernel::kUnfused;
  return options;
}

}  // namespace
}  // namespace sidestream::test

int main(int argc, char** argv) {
  using namespace sidestream;
  const comm::MpiEnvironment environment(&argc, &argv);
  std::vector<std::string> warnings;
  const auto communicator = comm::make_communicator(environment, {}, warnings);
  const test::Options options = test::parse(argc, argv);
  test::measure(*communicator, options);
  test::measure_moments(*communicator, options);
  return 0;
}

// Applies the gradients of a safetensors file with our optimizers and writes the results, for
// torch_oracle.py. optim_replay INPUT OUTPUT: INPUT holds weights [n], gradients [steps, n] (F32 or
// BF16) and metadata with the options.
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors_reader.hpp"
#include "core/checkpoint/safetensors_writer.hpp"
#include "core/optim/adamw.hpp"
#include "core/optim/sgd.hpp"

namespace {

namespace checkpoint = sidestream::checkpoint;
namespace optim = sidestream::optim;
using sidestream::core::BFloat16;
using sidestream::core::DType;

template <typename T>
std::vector<T> copy_of(const checkpoint::TensorView& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

struct State {
  std::vector<float> weights;
  std::vector<float> first;
  std::vector<float> second;
  std::vector<BFloat16> copy;
};

template <typename Gradient>
void replay(State& state, const std::vector<Gradient>& gradients,
            const std::map<std::string, std::string>& options) {
  const auto option = [&](const char* name) { return std::stod(options.at(name)); };
  const std::size_t n = state.weights.size();
  for (std::size_t step = 1; step * n <= gradients.size(); ++step) {
    const std::span<const Gradient> now = std::span(gradients).subspan((step - 1) * n, n);
    if (options.at("algorithm") == "adamw") {
      const optim::AdamWConfig config{
          .beta1 = option("beta1"), .beta2 = option("beta2"), .eps = option("eps")};
      optim::adamw_update(
          optim::AdamWRange<Gradient>{.weights = state.weights,
                                      .gradients = now,
                                      .first_moments = state.first,
                                      .second_moments = state.second,
                                      .low_precision = state.copy},
          optim::AdamWCoefficients::make(config, {.step = static_cast<std::int64_t>(step),
                                                  .lr = option("lr"),
                                                  .weight_decay = option("weight_decay"),
                                                  .gradient_scale = option("gradient_scale")}));
    } else {
      optim::sgd_update(optim::SgdRange<Gradient>{.weights = state.weights,
                                                  .gradients = now,
                                                  .momentum_buffer = state.first,
                                                  .low_precision = state.copy},
                        {.gradient_scale = static_cast<float>(option("gradient_scale")),
                         .lr = static_cast<float>(option("lr")),
                         .momentum = static_cast<float>(option("momentum")),
                         .weight_decay = static_cast<float>(option("weight_decay"))});
    }
  }
}

void run(const char* input, const char* output) {
  const checkpoint::SafetensorsReader reader(input);
  State state{
      .weights = copy_of<float>(reader.at("weights")), .first = {}, .second = {}, .copy = {}};
  const std::size_t n = state.weights.size();
  state.first.resize(n);
  state.second.resize(n);
  state.copy.resize(n);
  const auto gradients = reader.at("gradients");
  if (gradients.dtype() == DType::kBFloat16) {
    replay(state, copy_of<BFloat16>(gradients), reader.metadata());
  } else {
    replay(state, copy_of<float>(gradients), reader.metadata());
  }
  const auto source = [n](const char* name, DType dtype, const auto& values) {
    return checkpoint::TensorSource{
        .name = name, .dtype = dtype, .shape = {n}, .bytes = std::as_bytes(std::span(values))};
  };
  const std::vector<checkpoint::TensorSource> results{
      source("weights", DType::kFloat32, state.weights),
      source("first", DType::kFloat32, state.first),
      source("second", DType::kFloat32, state.second),
      source("copy", DType::kBFloat16, state.copy)};
  checkpoint::write_safetensors(output, results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "optim_replay: %s\n", error.what());
    return 1;
  }
  return 0;
}

#include "model/modules.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "model/shapes_only.hpp"

namespace sidestream::model {
namespace {

bool ends_with(const std::string& name, const std::string& ending) {
  return name.ends_with(ending);
}

torch::Tensor zeros(at::IntArrayRef sizes) { return torch::zeros(sizes, ShapesOnly::device()); }

bool is_norm(const std::string& name) { return name.find("ln_") != std::string::npos; }

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out)
    : weight(register_parameter("weight", zeros({in, out}))),
      bias(register_parameter("bias", zeros({out}))) {}

LayerNorm::LayerNorm(std::int64_t width)
    : weight(register_parameter("weight", torch::ones({width}, ShapesOnly::device()))),
      bias(register_parameter("bias", zeros({width}))) {}

Embedding::Embedding(std::int64_t rows, std::int64_t width)
    : weight(register_parameter("weight", zeros({rows, width}))) {}

Mlp::Mlp(std::int64_t width)
    : c_fc(register_module("c_fc", std::make_shared<Linear>(width, 4 * width))),
      c_proj(register_module("c_proj", std::make_shared<Linear>(4 * width, width))) {}

Attention::Attention(std::int64_t width)
    : c_attn(register_module("c_attn", std::make_shared<Linear>(width, 3 * width))),
      c_proj(register_module("c_proj", std::make_shared<Linear>(width, width))) {}

void initialise_parameters(torch::nn::Module& module, const Initialisation& initialisation) {
  const torch::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(initialisation.seed);
  const double residual_scale =
      1.0 / std::sqrt(static_cast<double>(initialisation.residual_branches));
  for (auto& entry : module.named_parameters()) {
    const std::string& name = entry.key();
    torch::Tensor parameter = entry.value();
    if (ends_with(name, "bias")) {
      parameter.zero_();
    } else if (is_norm(name)) {
      parameter.fill_(1);
    } else {
      // Drawn in fp32 on the host, so that neither dtype, device nor padding changes the numbers.
      const bool tokens = ends_with(name, "wte.weight");
      const std::int64_t rows = tokens ? initialisation.vocab_size : parameter.size(0);
      torch::Tensor drawn = torch::empty({rows, parameter.size(1)});
      drawn.normal_(0.0, ends_with(name, "c_proj.weight") ? 0.02 * residual_scale : 0.02,
                    generator);
      parameter.zero_();
      parameter.narrow(0, 0, rows).copy_(drawn);
    }
  }
}

}  // namespace sidestream::model

#include "profiling/analysis/fused_work.hpp"

#include <algorithm>
#include <array>

#include "profiling/analysis/element_work.hpp"

namespace sidestream::analysis {
namespace {

using In = OperatorInputs;

// Elements that are touched, and how often each is read or written.
struct Part {
  double elements = 0;
  double flops = 0;  // for an element
  double moved = 0;  // of an element
};

double columns(const Dims& weight, std::size_t dimension) {
  return weight.size() == 2 ? static_cast<double>(weight[dimension]) : 0;
}

// All extents of x but its last.
double rows(const Dims& x) {
  return x.empty() || x.back() <= 0 ? 0 : element_count(x) / static_cast<double>(x.back());
}

// A product leaves a run of rows in the cache; reading it from there is not counted. What is
// written are results: with their bias, and before GELU as well, for the backward.
constexpr double kBias = 1;
Part with_bias(const Dims& x, const Dims& weight) {
  return {.elements = rows(x) * columns(weight, 1), .flops = kBias, .moved = 1};
}
Part with_bias_and_gelu(const Dims& x, const Dims& weight) {
  return {.elements = rows(x) * columns(weight, 1), .flops = kBias + kGeluFlops, .moved = 2};
}
// The gradient of a bias sums the gradient over its rows.
Part bias_gradient(const Dims& gradient) {
  return {.elements = element_count(gradient), .flops = kBias, .moved = 1};
}
// Reads what came before GELU. Writes its gradient, which the bias sums, and the activation again:
// one product more.
Part gelu_gradient(const Dims& x, const Dims& weight) {
  return {.elements = rows(x) * columns(weight, 1),
          .flops = kGeluBackwardFlops + 1 + kBias,
          .moved = 3};
}
// Cross-entropy over the logits: maximum, difference, exponential, sum; with the gradient, which is
// written over them, a product more.
Part loss(const Dims& x, const Dims& weight) {
  return {.elements = rows(x) * columns(weight, 0), .flops = 4, .moved = 1};
}
Part loss_and_gradient(const Dims& x, const Dims& weight) {
  return {.elements = rows(x) * columns(weight, 0), .flops = 5, .moved = 2};
}

using Parts = std::array<Part, 2>;
struct Operator {
  std::string_view name;
  Parts (*parts)(const In& in);
};

constexpr auto kFusedOperators = std::to_array<Operator>({
    {"sidestream::linear",
     [](const In& in) -> Parts { return {with_bias(in.tensor(0), in.tensor(1))}; }},
    {"sidestream::linear_backward",
     [](const In& in) -> Parts { return {bias_gradient(in.tensor(0))}; }},
    {"sidestream::mlp",
     [](const In& in) -> Parts {
       return {with_bias_and_gelu(in.tensor(0), in.tensor(1)),
               with_bias(in.tensor(0), in.tensor(2))};
     }},
    {"sidestream::mlp_backward",
     [](const In& in) -> Parts {
       return {bias_gradient(in.tensor(0)), gelu_gradient(in.tensor(1), in.tensor(2))};
     }},
    {"sidestream::head_loss",
     [](const In& in) -> Parts { return {loss(in.tensor(0), in.tensor(1))}; }},
    {"sidestream::head_loss_and_gradients",
     [](const In& in) -> Parts { return {loss_and_gradient(in.tensor(0), in.tensor(1))}; }},
});

}  // namespace

std::optional<BesideProducts> work_beside_products(std::string_view name, const In& in) {
  const auto* found = std::find_if(kFusedOperators.begin(), kFusedOperators.end(),
                                   [&](const Operator& one) { return one.name == name; });
  if (found == kFusedOperators.end()) return std::nullopt;
  const double size = in.types.empty() ? 0 : size_of_type(in.types.front());
  BesideProducts work;
  for (const Part& part : found->parts(in)) {
    work.flops += part.elements * part.flops;
    work.bytes += part.elements * part.moved * size;
  }
  return work.flops > 0 ? std::optional(work) : std::nullopt;
}

}  // namespace sidestream::analysis

#include "profiling/advice/operation_kind.hpp"

#include <algorithm>
#include <array>

#include "profiling/advice/event_facts.hpp"
#include "profiling/advice/matrix_kernels.hpp"
#include "profiling/advice/name_words.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/input_shapes.hpp"
#include "profiling/analysis/operator_work.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::advice {
namespace {

using Json = nlohmann::ordered_json;

struct TypeName {
  const char* written;  // by the profiler
  const char* dtype;
};
constexpr std::array<TypeName, 4> kTypes = {
    {{"float", "fp32"}, {"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}, {"double", "fp64"}}};

// Of the first matrix among the inputs: biases and scalars may be of another type.
std::string dtype_of_inputs(const std::string& shapes_text, const std::string& types_text) {
  const auto shapes = analysis::parse_shapes(shapes_text);
  const auto types = analysis::list_elements(types_text);
  for (std::size_t i = 0; i < std::min(shapes.size(), types.size()); ++i) {
    if (shapes[i].size() != 1 || shapes[i].front().size() < 2) continue;
    for (const TypeName& type : kTypes) {
      if (types[i] == type.written) return type.dtype;
    }
  }
  return "";
}

// cuDNN's attention is compiled for its shapes; its names have the family of Tensor Core
// instructions ("wgmma_f16"), which take fp16 and bf16 alike.
bool takes_either_half(const std::string& name) {
  return has(name, {"cudnn_generated"}) && has(name, {"mma_f16", "prop_f16"});
}

// cuBLAS and cutlass write the type into the name, and Tensor Cores that take fp32 as "tf32".
// "s1688" sums in fp32 whatever it multiplies: alone it means tf32, after fp16 or bf16 it does not.
std::string dtype_of_kernel(const std::string& name, const std::string& precision) {
  if (takes_either_half(name)) return precision == "bf16" || precision == "fp16" ? precision : "";
  if (has(name, {"tf32"})) return "tf32";
  if (has(name, {"bf16"})) return "bf16";
  if (has(name, {"fp16", "f16", "_h16816", "_h1688", "_h884"})) return "fp16";
  if (has(name, {"s1688"})) return "tf32";
  if (has(name, {"sgemm", "f32f32"})) return "fp32";
  if (has(name, {"hgemm", "h884", "h1688", "h16816"})) return "fp16";
  return has(name, {"dgemm"}) ? "fp64" : "";
}

// fp32 inputs may be computed in the shorter type: only the kernel says.
std::string joined_dtype(const std::string& inputs, const std::string& kernel) {
  if (inputs.empty() || (inputs == "fp32" && kernel == "tf32")) return kernel;
  return inputs;
}

}  // namespace

bool is_copy(const std::string& name) {
  return name.starts_with("Memcpy") || name.starts_with("Memset");
}

bool is_collective(const std::string& name) {
  const analysis::NameClass what = analysis::class_of(name);
  return what == analysis::NameClass::kCollectiveKernel ||
         what == analysis::NameClass::kCollectiveRange;
}

bool is_phase(const std::string& name) {
  return std::any_of(ranges::kPhases.begin(), ranges::kPhases.end(),
                     [&](const ranges::PhaseInfo& phase) { return phase.name == name; });
}

// Linear only passes on, and has the time of its product where that is not recorded.
bool is_product(const std::string& name) {
  constexpr std::array<std::string_view, 3> kOthers = {"aten::linear", "aten::convolution",
                                                       "aten::mkldnn_convolution"};
  return analysis::is_matrix_product(name) ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end() ||
         (!name.starts_with("aten::") && is_matrix_kernel(name));
}

bool is_fusible(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {"aten::gelu",
                                                       "aten::gelu_backward",
                                                       "aten::tanh",
                                                       "aten::tanh_backward",
                                                       "aten::native_layer_norm",
                                                       "aten::native_layer_norm_backward",
                                                       "aten::_softmax",
                                                       "aten::_softmax_backward_data",
                                                       "aten::_log_softmax",
                                                       "aten::_log_softmax_backward_data"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

ComputedOn computed_on(const Json& operation, const std::string& precision) {
  ComputedOn result;
  std::string of_inputs;
  double all = 0, unaligned = 0;
  for (const Json& one : operation.value("shapes", Json::array())) {
    const std::string shapes = one.at("shapes");
    const double flops = one.at("flops");
    if (of_inputs.empty()) of_inputs = dtype_of_inputs(shapes, one.at("types"));
    all += flops;
    const auto product = product_of(one.at("operator").get<std::string>(), shapes);
    if (!product || product->aligned) continue;
    unaligned += flops;
    if (result.unaligned_shapes.empty()) result.unaligned_shapes = shapes;
  }
  result.dtype = joined_dtype(of_inputs, dtype_of_kernel(operation.at("name"), precision));
  if (all > 0) result.unaligned_share = unaligned / all;
  return result;
}

}  // namespace sidestream::advice

#include "model/recompute.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Context.h>

#include "model/fused/recorded.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

Tensor state_of(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// Numbers are drawn as after `state`; on destruction the generator goes on where it was.
class RepeatedDraws {
 public:
  RepeatedDraws(const at::Generator& generator, const Tensor& state)
      : generator_(generator), present_(state_of(generator)) {
    set_state(generator_, state);
  }
  ~RepeatedDraws() {
    try {
      set_state(generator_, present_);
    } catch (const std::exception&) {  // the device has failed: what matters has been reported
    }
  }
  RepeatedDraws(const RepeatedDraws&) = delete;
  RepeatedDraws& operator=(const RepeatedDraws&) = delete;

 private:
  at::Generator generator_;
  Tensor present_;
};

struct Recipe : torch::CustomClassHolder {
  Computation computation;
  std::vector<MadeAgain> again;  // of each input
  std::vector<bool> needs_grad;
  at::Generator generator;  // undefined: nothing is drawn
  Tensor draws;             // state of the generator before the first pass
};

using RecipePointer = c10::intrusive_ptr<Recipe>;

tensor_list leaves_of(const Recipe& recipe, const tensor_list& saved) {
  const torch::NoGradGuard no_grad;
  tensor_list leaves;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const Tensor value = saved[i].defined() ? saved[i] : recipe.again[i].make();
    leaves.push_back(value.detach().requires_grad_(recipe.needs_grad[i]));
  }
  return leaves;
}

constexpr const char* kRecipe = "recipe";

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static tensor_list forward(AutogradContext* context, const RecipePointer& recipe,
                             at::TensorList inputs) {
    // Profiles then know the layer of what runs in backward.
    RECORD_FUNCTION("sidestream::recompute", fused::Inputs(), fused::node_number());
    context->set_materialize_grads(false);
    tensor_list kept;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      kept.push_back(recipe->again[i].make ? Tensor() : inputs[i]);
      recipe->needs_grad.push_back(inputs[i].requires_grad());
    }
    context->save_for_backward(std::move(kept));
    context->saved_data[kRecipe] = c10::IValue::make_capsule(recipe);
    if (recipe->generator.defined()) recipe->draws = state_of(recipe->generator);
    return recipe->computation(inputs.vec(), Pass::kFirst);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const RecipePointer recipe = take_recipe(context);
    tensor_list leaves = leaves_of(*recipe, context->get_saved_variables());
    differentiate(*recipe, leaves, grads);
    tensor_list result(1);  // the recipe has no gradient
    for (const Tensor& leaf : leaves) result.push_back(leaf.grad());
    return result;
  }

  // The graph of the second pass dies with its outputs, before the gradients go on.
  static void differentiate(const Recipe& recipe, const tensor_list& leaves,
                            const tensor_list& grads) {
    tensor_list outputs, output_grads;
    {
      const torch::AutoGradMode with_gradients(true);
      std::optional<RepeatedDraws> draws;
      if (recipe.generator.defined()) draws.emplace(recipe.generator, recipe.draws);
      outputs = recipe.computation(leaves, Pass::kAgain);
    }
    tensor_list wanted;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!grads[i].defined()) continue;
      wanted.push_back(std::move(outputs[i]));
      output_grads.push_back(grads[i]);
    }
    outputs.clear();
    torch::autograd::backward(wanted, output_grads);
  }

  static RecipePointer take_recipe(AutogradContext* context) {
    const auto entry = context->saved_data.find(kRecipe);
    TORCH_CHECK(entry != context->saved_data.end(),
                "what --recompute makes again can be differentiated once; --recompute none has no "
                "such limit");
    const c10::IValue capsule = entry->second;
    context->saved_data.erase(entry);
    return c10::static_intrusive_pointer_cast<Recipe>(capsule.toCapsule());
  }
};

}  // namespace

std::vector<Tensor> recompute_in_backward(const Computation& computation,
                                          const std::vector<Operand>& inputs, Draws draws) {
  tensor_list values;
  bool wanted = false;
  for (const Operand& input : inputs) {
    values.push_back(input.value);
    wanted = wanted || input.value.requires_grad();
  }
  if (!wanted || !at::GradMode::is_enabled()) return computation(values, Pass::kFirst);
  const auto recipe = c10::make_intrusive<Recipe>();
  recipe->computation = computation;
  for (const Operand& input : inputs) recipe->again.push_back(input.again);
  if (draws == Draws::kSome)
    recipe->generator = at::globalContext().defaultGenerator(values.front().device());
  return RecomputeFunction::apply(recipe, at::TensorList(values));
}

}  // namespace sidestream::model

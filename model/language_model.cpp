#include "model/language_model.hpp"

#include "model/gpt2.hpp"
#include "model/mlp_language_model.hpp"

namespace sidestream::model {

std::shared_ptr<LanguageModel> make_language_model(const ModelConfig& config) {
  config.validate();
  if (config.family == "mlp") return std::make_shared<MlpLanguageModel>(config);
  return std::make_shared<Gpt2>(config);
}

}  // namespace sidestream::model

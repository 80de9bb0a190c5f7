#include "model/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::model {
namespace {

using testing::HasSubstr;

template <typename Exception, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  }
  return "no exception";
}

TEST(ModelConfigTest, parameter_count_is_the_published_one) {
  EXPECT_EQ(parameter_count(preset("gpt2-124m")), 124439808);
  EXPECT_EQ(parameter_count(preset("gpt2-355m")), 354823168);
  EXPECT_EQ(parameter_count(preset("gpt2-774m")), 774030080);
  EXPECT_EQ(parameter_count(preset("gpt2-1558m")), 1557611200);
  EXPECT_EQ(parameter_count(preset("gpt2-mini")), 10942464);
}

TEST(ModelConfigTest, parameter_count_leaves_padding_out) {
  ModelConfig config = preset("gpt2-124m");
  config.padded_vocab_size = 50304;
  EXPECT_EQ(parameter_count(config), 124439808);
}

TEST(ModelConfigTest, flops_per_token_follow_the_formula) {
  const FlopsPerToken flops = flops_per_token(preset("gpt2-124m"), 1024);

  EXPECT_DOUBLE_EQ(flops.causal, 6.0 * 124439808 + 6.0 * 12 * 768 * 1024);
  EXPECT_DOUBLE_EQ(flops.palm, 6.0 * 124439808 + 12.0 * 12 * 768 * 1024);
}

TEST(ModelConfigTest, preset_of_an_unknown_name_lists_the_names) {
  EXPECT_THAT(message_of<core::ConfigError>([] { preset("gpt3"); }), HasSubstr("gpt2-124m"));
}

TEST(ModelConfigTest, every_preset_is_valid) {
  for (const std::string& name : preset_names()) EXPECT_NO_THROW(preset(name).validate()) << name;
}

TEST(ModelConfigTest, validate_names_the_field) {
  ModelConfig config = preset("gpt2-micro");
  config.heads = 5;
  EXPECT_THAT(message_of<core::ConfigError>([&] { config.validate(); }),
              HasSubstr("heads, found 32 and 5"));
  config = preset("gpt2-micro");
  config.padded_vocab_size = 511;
  EXPECT_THAT(message_of<core::ConfigError>([&] { config.validate(); }),
              HasSubstr("padded_vocab_size"));
  config = preset("gpt2-micro");
  config.dropout = 1.0;
  EXPECT_THAT(message_of<core::ConfigError>([&] { config.validate(); }), HasSubstr("dropout"));
}

TEST(ModelConfigTest, validate_refuses_more_parameters_than_can_be_counted) {
  ModelConfig config = preset("gpt2-micro");
  config.width = std::int64_t{1} << 30;
  EXPECT_THAT(message_of<core::ConfigError>([&] { config.validate(); }),
              HasSubstr("at most 1e+15 parameters, found 2.8e+19"));
  config = preset("gpt2-micro");
  config.padded_vocab_size = (std::int64_t{1} << 31) - 1;
  EXPECT_NO_THROW(config.validate());
}

TEST(HuggingFaceTest, config_survives_a_round_trip) {
  for (const char* name : {"gpt2-124m", "gpt2-mini", "mlp"}) {
    EXPECT_EQ(from_hugging_face(to_hugging_face(preset(name))), preset(name)) << name;
  }
}

TEST(HuggingFaceTest, from_hugging_face_refuses_what_it_cannot_do) {
  const auto refused = [](const char* field, const nlohmann::json& value) {
    nlohmann::json object = to_hugging_face(preset("gpt2-micro"));
    object[field] = value;
    return message_of<core::CheckpointError>([&] { from_hugging_face(object); });
  };
  EXPECT_THAT(refused("activation_function", "relu"),
              HasSubstr("activation_function: expected \"gelu_new\""));
  EXPECT_THAT(refused("scale_attn_by_inverse_layer_idx", true),
              HasSubstr("scale_attn_by_inverse_layer_idx"));
  EXPECT_THAT(refused("n_inner", 7), HasSubstr("n_inner"));
  EXPECT_THAT(refused("n_head", "four"),
              HasSubstr("n_head: expected a whole number, found \"four\""));
  EXPECT_THAT(refused("n_head", 5), HasSubstr("multiple of heads"));
  EXPECT_THAT(refused("model_type", "llama"), HasSubstr("llama"));
  EXPECT_THAT(refused("attn_pdrop", 0.3), HasSubstr("attn_pdrop"));
  EXPECT_THAT(refused("resid_pdrop", "much"), HasSubstr("config.json"));
}

TEST(HuggingFaceTest, from_hugging_face_names_a_missing_field) {
  nlohmann::json object = to_hugging_face(preset("gpt2-micro"));
  object.erase("n_layer");
  EXPECT_THAT(message_of<core::CheckpointError>([&] { from_hugging_face(object); }),
              HasSubstr("n_layer: expected a whole number, found nothing"));
}

TEST(HuggingFaceTest, padding_is_not_published) {
  ModelConfig config = preset("gpt2-124m");
  config.padded_vocab_size = 50304;

  EXPECT_EQ(to_hugging_face(config)["vocab_size"], 50257);
  EXPECT_EQ(published_rows(config, "transformer.wte.weight", 50304), 50257);
  EXPECT_EQ(published_rows(config, "transformer.wpe.weight", 1024), 1024);
}

TEST(HuggingFaceTest, check_same_architecture_lists_every_difference) {
  const std::string message = message_of<core::CheckpointError>(
      [] { check_same_architecture(preset("gpt2-mini"), preset("gpt2-tiny"), "runs/a"); });

  EXPECT_THAT(message,
              HasSubstr("runs/a: the weights are of another model: layers: 4 there, 6 configured"));
  EXPECT_THAT(message, HasSubstr("context_length: 128 there, 256 configured"));
  EXPECT_THAT(message, HasSubstr(". Set these flags as there, or take other weights"));
  EXPECT_NO_THROW(check_same_architecture(preset("gpt2-mini"), preset("gpt2-mini"), "runs/a"));
}

}  // namespace
}  // namespace sidestream::model

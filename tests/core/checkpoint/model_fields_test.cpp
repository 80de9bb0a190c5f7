#include "core/checkpoint/model_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(ModelFieldsTest, equal_fields_differ_in_nothing) {
  const json fields = {{"layers", 6}, {"norm", {{"eps", 1e-5}}}};

  EXPECT_TRUE(differing_fields(fields, fields).empty());
  EXPECT_TRUE(differing_fields(json::object(), json::object()).empty());
  EXPECT_NO_THROW(require_same_model(fields, fields, "step_00000001"));
}

TEST(ModelFieldsTest, each_differing_field_has_a_line) {
  const json stored = {{"layers", 6}, {"width", 384}, {"norm", {{"eps", 1e-5}}}, {"old", true}};
  const json configured = {
      {"layers", 12}, {"width", 384}, {"norm", {{"eps", 1e-6}}}, {"kind", "gpt2"}};

  EXPECT_THAT(differing_fields(stored, configured),
              ElementsAre("kind: absent in the checkpoint, \"gpt2\" configured",
                          "layers: 6 in the checkpoint, 12 configured",
                          "norm/eps: 1e-05 in the checkpoint, 1e-06 configured",
                          "old: true in the checkpoint, absent configured"));
}

TEST(ModelFieldsTest, another_model_is_a_checkpoint_error_that_lists_the_fields) {
  const std::string message = checkpoint_error_of([] {
    require_same_model({{"layers", 6}}, {{"layers", 12}}, "runs/a/step_00000001");
  });

  EXPECT_THAT(
      message,
      testing::HasSubstr("runs/a/step_00000001 is a checkpoint of another model: layers: 6 in the "
                         "checkpoint, 12 configured"));
}

}  // namespace
}  // namespace sidestream::checkpoint

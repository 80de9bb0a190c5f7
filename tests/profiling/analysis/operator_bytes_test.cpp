// Bytes from shapes, against counting by hand. Shapes and types are as PyTorch 2.11 records them.
#include "profiling/analysis/operator_bytes.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "profiling/analysis/operator_work.hpp"

namespace sidestream::analysis {
namespace {

// Types of the first arguments, so many; what follows has none, as numbers have.
std::string floats(int count) {
  std::string text = "[\"float\"";
  for (int i = 1; i < count; ++i) text += ",\"float\"";
  return text + "]";
}

std::optional<double> bytes(const std::string& name, const std::string& shapes,
                            const std::string& types, const std::string& values = "") {
  return work_of({.name = name, .shapes = shapes, .types = types, .values = values}).bytes;
}

TEST(OperatorBytesTest, products) {
  EXPECT_EQ(bytes("aten::mm", "[[8,3],[3,5]]", R"(["c10::BFloat16","c10::BFloat16"])"),
            2 * (8 * 3 + 3 * 5 + 8 * 5));
  EXPECT_EQ(bytes("aten::bmm", "[[4,8,3],[4,3,5]]", floats(2)), 4 * 4 * (8 * 3 + 3 * 5 + 8 * 5));
  EXPECT_EQ(bytes("aten::addmm", "[[5],[8,3],[3,5],[],[]]", floats(3)),
            4 * (5 + 8 * 3 + 3 * 5 + 8 * 5));
  EXPECT_EQ(bytes("sidestream::linear", "[[2,3,8],[8,24]]", floats(2)),
            4 * (2 * 3 * 8 + 8 * 24 + 2 * 3 * 24));
  EXPECT_EQ(bytes("sidestream::mlp", "[[2,3,8],[8,32],[32,8]]", floats(3)),
            4 * (2 * 3 * 8 + 8 * 32 + 32 * 8 + 2 * 3 * 8));
  EXPECT_EQ(bytes("sidestream::head_loss_and_gradients", "[[2,3,8],[50,8]]", floats(2)),
            4 * 2 * (2 * 3 * 8 + 50 * 8));
}

TEST(OperatorBytesTest, backward_of_products_writes_what_forward_has_read) {
  EXPECT_EQ(bytes("sidestream::linear_backward", "[[2,3,24],[2,3,8],[8,24]]", floats(3)),
            4 * (2 * 3 * 24 + 2 * (2 * 3 * 8 + 8 * 24)));
}

TEST(OperatorBytesTest, comparisons_write_a_bool_an_element) {
  EXPECT_EQ(bytes("aten::eq", "[[8,5],[5]]", floats(2)), 4 * (8 * 5 + 5) + 8 * 5);
}

// A column of 1000 and a row of 1000 make a million elements.
TEST(OperatorBytesTest, both_inputs_may_be_stretched) {
  const std::string crossed = "[[1000,1],[1,1000]]";
  EXPECT_EQ(bytes("aten::mul", crossed, floats(2)), 4 * (2 * 1000 + 1'000'000));
  EXPECT_EQ(bytes("aten::ge", crossed, floats(2)), 4 * 2 * 1000 + 1'000'000);
  EXPECT_EQ(bytes("aten::add", "[[6,1,5],[4,5],[]]", floats(2)), 4 * (30 + 20 + 6 * 4 * 5));
  EXPECT_EQ(bytes("aten::where", "[[8,1],[5],[]]", R"(["bool","float","float"])"),
            8 + 4 * 5 + 4 + 4 * 8 * 5);
}

TEST(OperatorBytesTest, of_shapes_that_do_not_fit_nothing_is_known) {
  for (const char* shapes : {"[[8,3],[4]]", "[[8,3],[8,1,2]]", "[[-1,3],[3]]", "[[0,3],[3]]"}) {
    EXPECT_FALSE(bytes("aten::mul", shapes, floats(2))) << shapes;
    EXPECT_FALSE(bytes("aten::eq", shapes, floats(2))) << shapes;
  }
  // In place nothing is stretched that is written.
  EXPECT_FALSE(bytes("aten::mul_", "[[1,3],[8,3]]", floats(2)));
  EXPECT_EQ(bytes("aten::mul_", "[[8,3],[1,3]]", floats(2)), 4 * (2 * 24 + 3));
}

// Numbers do not widen a tensor, tensors without dimensions only to a higher kind of number.
TEST(OperatorBytesTest, the_result_has_the_type_that_pytorch_promotes_to) {
  const std::string two = "[[8,3],[]]";
  EXPECT_EQ(bytes("aten::mul", two, R"(["c10::BFloat16","double"])"), 2 * 2 * 24 + 8);
  EXPECT_EQ(bytes("aten::mul", two, R"(["long int","float"])"), (8 + 4) * 24 + 4);
  EXPECT_EQ(bytes("aten::mul", "[[8,3],[8,3]]", R"(["c10::BFloat16","float"])"), (2 + 4 + 4) * 24);
  EXPECT_EQ(bytes("aten::mul", "[[8,3],[8,3]]", R"(["long int","float"])"), (8 + 4 + 4) * 24);
  EXPECT_FALSE(bytes("aten::mul", "[[8,3],[8,3]]", R"(["float","own"])"));
}

TEST(OperatorBytesTest, functions_of_elements_read_and_write_each) {
  for (const char* name : {"cos", "sin", "erf", "square", "log1p", "reciprocal", "sign", "elu",
                           "leaky_relu", "softplus", "hardswish", "mish"})
    EXPECT_EQ(bytes(std::string("aten::") + name, "[[1000,1000]]", floats(1)), 8e6) << name;
  for (const char* name : {"rsub", "atan2", "remainder", "leaky_relu_backward", "elu_backward"})
    EXPECT_EQ(bytes(std::string("aten::") + name, "[[1000,1000],[1000,1000],[]]", floats(2)), 12e6)
        << name;
  EXPECT_EQ(bytes("aten::isnan", "[[1000,1000]]", floats(1)), 5e6);
}

TEST(OperatorBytesTest, lists_of_tensors) {
  const std::string two = "[[[10],[6]],[[10],[6]]]";
  EXPECT_EQ(bytes("aten::_foreach_mul", two, floats(2)), 4 * 16 * 3);
  EXPECT_EQ(bytes("aten::_foreach_mul_", two, floats(2)), 4 * 16 * 3);
  EXPECT_EQ(bytes("aten::_foreach_sqrt", "[[[10],[6]]]", floats(1)), 4 * 16 * 2);
  EXPECT_EQ(bytes("aten::_foreach_mul", "[[[10],[6]],[]]", floats(2)), 4 * (16 * 2 + 1));
  EXPECT_EQ(bytes("aten::_foreach_copy_", two, floats(2)), 4 * 16 * 2);
  EXPECT_FALSE(bytes("aten::_foreach_mul", "[[[10],[6]],[]]", R"(["TensorList","float"])"));
}

// 16 queries, 32 keys of size 8 and values of size 6, for 2 x 4 heads.
TEST(OperatorBytesTest, attention) {
  EXPECT_EQ(bytes("aten::_scaled_dot_product_flash_attention", "[[2,4,16,8],[2,4,32,8],[2,4,32,6]]",
                  floats(3)),
            4 * 2 * 4 * (16 * 8 + 32 * 8 + 32 * 6 + 16 * 6));
  EXPECT_EQ(bytes("sidestream::attention", "[[2,3,24]]", floats(1)), 4 * 2 * 3 * (24 + 8));
}

// In: the gradient, queries, keys, values, the result and its log-sums. Out: three gradients.
TEST(OperatorBytesTest, attention_backward) {
  EXPECT_EQ(bytes("aten::_scaled_dot_product_flash_attention_backward",
                  "[[2,4,16,6],[2,4,16,8],[2,4,32,8],[2,4,32,6],[2,4,16,6],[2,4,16]]", floats(6)),
            4 * 2 * 4 * (16 * 6 + 2 * (16 * 8 + 32 * 8 + 32 * 6) + 16 * 6 + 16));
  EXPECT_EQ(bytes("sidestream::attention_backward", "[[2,3,24],[2,3,8]]", floats(2)),
            4 * 2 * 3 * (24 + 8 + 24));
}

// 9 x 9 with a border of 1 and a stride of 2: 5 x 5 results.
TEST(OperatorBytesTest, convolution) {
  EXPECT_EQ(bytes("aten::convolution", "[[2,3,9,9],[6,3,3,3],[6],[],[],[],[],[],[]]", floats(3),
                  R"(["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])"),
            4 * (2 * 3 * 9 * 9 + 6 * 3 * 3 * 3 + 6 + 2 * 6 * 5 * 5));
}

// The gradient of the input is made of gradient and weight, that of the weight of gradient and
// input.
TEST(OperatorBytesTest, convolution_backward_by_its_output_mask) {
  const auto masked = [](const std::string& mask) {
    return bytes(
        "aten::convolution_backward", "[[2,6,5,5],[2,3,9,9],[6,3,3,3],[],[],[],[],[],[],[],[]]",
        floats(3),
        R"(["","","","[6]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1",")" + mask + "\"]");
  };
  const double gradient = 2 * 6 * 5 * 5, input = 2 * 3 * 9 * 9, weight = 6 * 3 * 3 * 3;
  EXPECT_EQ(masked("[True, True, True]"), 4 * (gradient + 2 * (input + weight)));
  EXPECT_EQ(masked("[True, False, False]"), 4 * (gradient + weight + input));
  EXPECT_EQ(masked("[False, True, True]"), 4 * (gradient + input + weight));
  EXPECT_EQ(masked("[False, False, True]"), 4 * gradient);
  EXPECT_EQ(masked(""), 4 * (gradient + 2 * (input + weight)));
}

// 2 x 4 x 6 x 6 elements and 4 channels: input, weight, bias, running mean and variance; one more
// tensor out.
TEST(OperatorBytesTest, batch_norm) {
  for (const char* name :
       {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"})
    EXPECT_EQ(bytes(name, "[[2,4,6,6],[4],[4],[4],[4],[],[],[]]", floats(5)),
              4 * (2 * 2 * 4 * 6 * 6 + 4 * 4))
        << name;
}

// Gradient and input, five of channels; the gradient of the input out. cuDNN keeps bytes besides.
TEST(OperatorBytesTest, batch_norm_backward) {
  const double expected = 4 * (3 * 2 * 4 * 6 * 6 + 5 * 4);
  EXPECT_EQ(bytes("aten::native_batch_norm_backward",
                  "[[2,4,6,6],[2,4,6,6],[4],[4],[4],[4],[4],[],[],[]]", floats(7)),
            expected);
  EXPECT_EQ(bytes("aten::miopen_batch_norm_backward",
                  "[[2,4,6,6],[2,4,6,6],[4],[4],[4],[4],[4],[]]", floats(7)),
            expected);
  EXPECT_EQ(
      bytes("aten::cudnn_batch_norm_backward", "[[2,4,6,6],[2,4,6,6],[4],[4],[4],[4],[4],[],[100]]",
            R"(["float","float","float","float","float","float","float","","unsigned char"])"),
      expected + 100);
}

TEST(OperatorBytesTest, norms_of_rows_and_groups) {
  EXPECT_EQ(bytes("aten::native_layer_norm", "[[10,100],[],[100],[100],[]]",
                  R"(["float","ScalarList","float","float"])"),
            4 * (2 * 10 * 100 + 2 * 100));
  EXPECT_EQ(bytes("aten::_fused_rms_norm", "[[10,100],[],[100],[]]",
                  R"(["float","ScalarList","float",""])"),
            4 * (2 * 10 * 100 + 100));
  EXPECT_EQ(bytes("aten::native_group_norm", "[[2,4,6,6],[4],[4],[],[],[],[],[]]", floats(3)),
            4 * (2 * 2 * 4 * 6 * 6 + 2 * 4));
}

// Gradient and input, the statistics of each row or group, the weights; one more tensor out.
TEST(OperatorBytesTest, backward_of_norms_of_rows_and_groups) {
  EXPECT_EQ(bytes("aten::native_layer_norm_backward",
                  "[[10,100],[10,100],[],[10,1],[10,1],[100],[100],[]]",
                  R"(["float","float","ScalarList","float","float","float","float"])"),
            4 * (3 * 10 * 100 + 2 * 10 + 2 * 100));
  EXPECT_EQ(bytes("aten::_fused_rms_norm_backward", "[[10,100],[10,100],[],[10,1],[100],[]]",
                  R"(["float","float","ScalarList","float","float"])"),
            4 * (3 * 10 * 100 + 10 + 100));
  EXPECT_EQ(bytes("aten::native_group_norm_backward",
                  "[[2,4,6,6],[2,4,6,6],[2,2],[2,2],[4],[],[],[],[],[]]", floats(5)),
            4 * (3 * 2 * 4 * 6 * 6 + 2 * 2 * 2 + 4));
}

TEST(OperatorBytesTest, element_wise) {
  EXPECT_EQ(bytes("aten::add", "[[8,3],[3],[]]", floats(2)), 4 * (8 * 3 + 3 + 8 * 3));
  EXPECT_EQ(bytes("aten::add_", "[[8,3],[8,3],[]]", floats(2)), 4 * 3 * 8 * 3);
  EXPECT_EQ(bytes("aten::copy_", "[[8,3],[8,3],[]]", floats(2)), 4 * 2 * 8 * 3);
  EXPECT_EQ(bytes("aten::gelu", "[[8,3],[]]", floats(1)), 4 * 2 * 8 * 3);
  EXPECT_EQ(bytes("aten::gelu_backward", "[[8,3],[8,3],[]]", floats(2)), 4 * 3 * 8 * 3);
}

TEST(OperatorBytesTest, softmax) {
  EXPECT_EQ(bytes("aten::_softmax", "[[8,3],[],[]]", floats(1)), 4 * 2 * 8 * 3);
  EXPECT_EQ(bytes("aten::_softmax_backward_data", "[[8,3],[8,3],[],[]]", floats(2)), 4 * 3 * 8 * 3);
}

// The mask has a byte for each element.
TEST(OperatorBytesTest, dropout) {
  EXPECT_EQ(bytes("aten::native_dropout", "[[8,3],[],[]]", floats(1)), (4 + 4 + 1) * 8 * 3);
  EXPECT_EQ(bytes("aten::native_dropout_backward", "[[8,3],[8,3],[]]", R"(["float","bool",""])"),
            (4 + 1 + 4) * 8 * 3);
}

TEST(OperatorBytesTest, of_a_table_the_rows_that_are_read) {
  EXPECT_EQ(bytes("aten::embedding", "[[1000,8],[2,3]]", R"(["float","long int"])"),
            8 * 6 + 2 * 6 * 8 * 4);
  EXPECT_EQ(bytes("sidestream::embed", "[[1000,8],[2,3]]", R"(["float","long int"])"),
            8 * 6 + 2 * 6 * 8 * 4);
}

// Of 16 elements: parameter, gradient and two moments in; all but the gradient out.
// Two matrices in; a product out, in their type, or on top of a sum in fp32.
TEST(OperatorBytesTest, own_products) {
  const std::string types = R"(["c10::BFloat16","c10::BFloat16","float"])";
  EXPECT_EQ(bytes("sidestream::product", "[[8,3],[3,5]]", types), 2 * (24 + 15 + 40));
  EXPECT_EQ(bytes("sidestream::product_sum", "[[8,3],[3,5],[8,5]]", types),
            2 * (24 + 15) + 4 * 2 * 40);
}

TEST(OperatorBytesTest, fused_adamw) {
  EXPECT_EQ(
      bytes("aten::_fused_adamw_", "[[[10],[6]],[[10],[6]],[[10],[6]],[[10],[6]]]", floats(4)),
      4 * 16 * (4 + 3));
}

// Parameter, gradient and momentum in, all but the gradient out. Without momentum the list of its
// buffers is empty.
TEST(OperatorBytesTest, fused_sgd) {
  EXPECT_EQ(bytes("aten::_fused_sgd_", "[[[10],[6]],[[10],[6]],[[10],[6]],[],[]]", floats(3)),
            4 * 16 * (3 + 2));
  EXPECT_EQ(bytes("aten::_fused_sgd_", "[[[10],[6]],[[10],[6]],[],[],[]]", floats(3)),
            4 * 16 * (2 + 1));
}

// What PyTorch writes for a list of tensors does not say of which type they are.
TEST(OperatorBytesTest, lists_without_a_type_have_no_bytes) {
  EXPECT_EQ(bytes("aten::_fused_sgd_", "[[[10],[6]],[[10],[6]],[[10],[6]],[],[]]",
                  R"(["TensorList","TensorList","TensorList","Scalar","Scalar"])"),
            std::nullopt);
}

TEST(OperatorBytesTest, what_lacks_its_result_is_marked) {
  const auto at_least = [](const char* name, const char* shapes) {
    const OperatorWork done =
        work_of({.name = name, .shapes = shapes, .types = floats(2), .values = ""});
    EXPECT_TRUE(done.bytes) << name;
    return done.bytes_at_least;
  };
  EXPECT_TRUE(at_least("own::op", "[[8,3],[3]]"));
  EXPECT_TRUE(at_least("aten::cumsum", "[[8,3],[]]"));
  EXPECT_FALSE(at_least("aten::cos", "[[8,3]]"));
  EXPECT_FALSE(at_least("aten::mm", "[[8,3],[3,5]]"));
  EXPECT_FALSE(at_least("aten::copy_", "[[8,3],[8,3]]"));
}

TEST(OperatorBytesTest, of_what_is_not_known_the_inputs) {
  EXPECT_EQ(bytes("own::op", "[[8,3],[3],[]]", R"(["float","double","Scalar"])"),
            4 * 8 * 3 + 8 * 3);
}

}  // namespace
}  // namespace sidestream::analysis

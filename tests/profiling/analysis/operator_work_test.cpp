// FLOPs from shapes, against counting by hand; bytes: operator_bytes_test.cpp. The truth test
// compares the FLOPs of a recorded trace with what PyTorch's own counter said.
#include "profiling/analysis/operator_work.hpp"

#include <gtest/gtest.h>

#include <string>

#include "profiling/analysis/input_shapes.hpp"

namespace sidestream::analysis {
namespace {

OperatorWork work(const std::string& name, const std::string& shapes, const std::string& types = "",
                  const std::string& values = "") {
  return work_of({.name = name, .shapes = shapes, .types = types, .values = values});
}

TEST(InputShapesTest, tensors_lists_and_scalars) {
  const auto shapes = parse_shapes(" [[64, 768], [[3], [4, 5]], [], [7]] ");

  ASSERT_EQ(shapes.size(), 4u);
  EXPECT_EQ(shapes[0], (ArgumentShapes{{64, 768}}));
  EXPECT_EQ(shapes[1], (ArgumentShapes{{3}, {4, 5}}));
  EXPECT_EQ(shapes[2], (ArgumentShapes{{}}));
  EXPECT_EQ(shapes[3], (ArgumentShapes{{7}}));
}

TEST(InputShapesTest, text_that_is_no_list_of_shapes) {
  for (const char* text : {"", "[", "]", "[[", "[[1]", "x", "[x]", "[[1,x]]", "[[],", "[\"[1\"]"})
    for (const ArgumentShapes& one : parse_shapes(text)) EXPECT_LE(one.size(), 2u) << text;
  EXPECT_EQ(integers_in("[1, -2, x, 99999999999999999999]"), (Dims{1, -2}));
}

TEST(InputShapesTest, texts_in_quotes_may_hold_commas) {
  const auto values = list_elements(R"(["", "[1, 2]", "False"])");

  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[1], "[1, 2]");
  EXPECT_EQ(values[2], "False");
}

TEST(OperatorWorkTest, products) {
  EXPECT_EQ(work("aten::mm", "[[8,3],[3,5]]").flops, 2 * 8 * 3 * 5);
  EXPECT_EQ(work("aten::bmm", "[[4,8,3],[4,3,5]]").flops, 2 * 4 * 8 * 3 * 5);
  EXPECT_EQ(work("aten::addmm", "[[5],[8,3],[3,5],[],[]]").flops, 2 * 8 * 3 * 5);
  EXPECT_EQ(work("aten::baddbmm", "[[5],[4,8,3],[4,3,5],[],[]]").flops, 2 * 4 * 8 * 3 * 5);
}

// Counted by hand, apart from the FLOPs of products: no sum of a model's work has them.
TEST(OperatorWorkTest, what_goes_over_elements_has_flops_of_its_own) {
  const auto flops = [](const std::string& name, const std::string& shapes) {
    const OperatorWork done = work(name, shapes);
    EXPECT_FALSE(done.flops) << name;
    return done.element_flops;
  };
  EXPECT_EQ(flops("aten::add", "[[8,3],[3],[]]"), 8 * 3);
  EXPECT_EQ(flops("aten::mul_", "[[8,3],[8,3]]"), 8 * 3);
  EXPECT_EQ(flops("aten::addcmul_", "[[8,3],[8,3],[8,3],[]]"), 3 * 8 * 3);
  EXPECT_EQ(flops("aten::gelu", "[[8,3],[]]"), 5 * 8 * 3);
  EXPECT_EQ(flops("aten::_softmax", "[[8,3],[],[]]"), 5 * 8 * 3);
  EXPECT_EQ(flops("aten::native_layer_norm", "[[8,3],[],[3],[3],[]]"), 7 * 8 * 3);
  EXPECT_EQ(flops("aten::native_layer_norm_backward", "[[8,3],[8,3],[],[8],[8],[3],[3]]"),
            13 * 8 * 3);
  EXPECT_EQ(flops("aten::_fused_adamw_", "[[[10],[6]],[[10],[6]],[[10],[6]],[[10],[6]]]"), 14 * 16);
  EXPECT_EQ(flops("aten::_fused_sgd_", "[[[10],[6]],[[10],[6]],[[10],[6]],[],[]]"), 7 * 16);
  EXPECT_EQ(flops("aten::_fused_sgd_", "[[[10],[6]],[[10],[6]],[],[],[]]"), 4 * 16);
  EXPECT_EQ(flops("aten::_foreach_mul_", "[[[10],[6]],[]]"), 16);
  EXPECT_EQ(flops("aten::copy_", "[[8,3],[8,3],[]]"), std::nullopt);
  EXPECT_FALSE(work("aten::mm", "[[8,3],[3,5]]").element_flops);
}

TEST(OperatorWorkTest, elements_are_those_of_the_result) {
  const auto flops = [](const char* name, const char* shapes) {
    return work(name, shapes).element_flops;
  };
  EXPECT_EQ(flops("aten::mul", "[[1000,1],[1,1000]]"), 1e6);
  EXPECT_EQ(flops("aten::addcmul", "[[8,1,1],[5,1],[3],[]]"), 3 * 8 * 5 * 3);
  EXPECT_EQ(flops("aten::mul", "[[1000,2],[1,1000]]"), std::nullopt);
  EXPECT_EQ(flops("aten::mul_", "[[1,3],[8,3]]"), std::nullopt);
}

TEST(OperatorWorkTest, functions_of_elements_have_flops) {
  for (const char* name : {"cos", "sin", "erf", "square", "rsub", "_foreach_sqrt"})
    EXPECT_EQ(work(std::string("aten::") + name, "[[8,3]]").element_flops, 8 * 3) << name;
  EXPECT_EQ(work("aten::leaky_relu", "[[8,3],[]]").element_flops, 2 * 8 * 3);
  EXPECT_EQ(work("aten::where", "[[8,3],[8,3],[8,3]]").element_flops, std::nullopt);
}

TEST(OperatorWorkTest, attention_counts_in_full) {
  const std::string shapes = "[[2,4,16,8],[2,4,32,8],[2,4,32,8],[]]";
  const double pair = 2.0 * 2 * 4 * 16 * 32 * 8;  // one product of queries, keys and head size

  EXPECT_EQ(work("aten::_scaled_dot_product_flash_attention", shapes).flops, 2 * pair);
  EXPECT_EQ(work("aten::_scaled_dot_product_flash_attention_backward",
                 "[[2,4,16,8],[2,4,16,8],[2,4,32,8],[2,4,32,8],[2,4,16,8]]")
                .flops,
            5 * pair);
}

// 2 rows of 3 tokens, width 8, hidden 32, vocabulary 50: counted product by product.
TEST(OperatorWorkTest, fused_operators_count_what_they_are_made_of) {
  const double rows = 6;
  EXPECT_EQ(work("sidestream::linear", "[[2, 3, 8], [8, 24]]").flops, 2 * rows * 8 * 24);
  EXPECT_EQ(work("sidestream::linear_backward", "[[2, 3, 24], [2, 3, 8], [8, 24]]").flops,
            2 * rows * 24 * 8 + 2 * 8 * rows * 24);
  const double mlp = 2 * rows * 8 * 32 + 2 * rows * 32 * 8;
  EXPECT_EQ(work("sidestream::mlp", "[[2, 3, 8], [8, 32], [32, 8]]").flops, mlp);
  EXPECT_EQ(work("sidestream::mlp_backward", "[[2, 3, 8], [2, 3, 8], [8, 32], [32, 8]]").flops,
            2 * mlp);
  EXPECT_EQ(work("sidestream::bias_product", "[[6, 8], [8, 32]]").flops, 2 * rows * 8 * 32);
  for (const char* name : {"sidestream::product", "sidestream::product_sum"})
    EXPECT_EQ(work(name, "[[6, 8], [8, 32], [6, 32]]").flops, 2 * rows * 8 * 32) << name;
  EXPECT_EQ(work("sidestream::head_loss", "[[2, 3, 8], [50, 8]]").flops, 2 * rows * 8 * 50);
  EXPECT_EQ(work("sidestream::head_loss_and_gradients", "[[2, 3, 8], [50, 8]]").flops,
            3 * 2 * rows * 8 * 50);
}

// 6 rows, hidden 32, width 8; by hand from model/fused. Backward: GELU's gradient 12, the
// activation again 1, the sum for the bias 1; it reads what came before GELU, writes its gradient
// and the activation, and reads dy once more for the other bias.
TEST(OperatorWorkTest, fused_operators_do_more_than_their_products) {
  const auto beside = [](const char* name, const char* shapes) {
    return work(name, shapes, R"(["float","float","float","float"])")
        .beside_products.value_or(BesideProducts{});
  };
  const auto forward = beside("sidestream::mlp", "[[2, 3, 8], [8, 32], [32, 8]]");
  EXPECT_EQ(forward.flops, 6 * 32 * (1 + 5) + 6 * 8);
  EXPECT_EQ(forward.bytes, 4 * (2 * 6 * 32 + 6 * 8));
  const auto backward =
      beside("sidestream::mlp_backward", "[[2, 3, 8], [2, 3, 8], [8, 32], [32, 8]]");
  EXPECT_EQ(backward.flops, 6 * 32 * (12 + 1 + 1) + 6 * 8);
  EXPECT_EQ(backward.bytes, 4 * (3 * 6 * 32 + 6 * 8));
  EXPECT_EQ(beside("sidestream::linear", "[[2, 3, 8], [8, 24]]").flops, 6 * 24);
  EXPECT_EQ(beside("sidestream::linear_backward", "[[2, 3, 24], [2, 3, 8], [8, 24]]").bytes,
            4 * 6 * 24);
  EXPECT_EQ(beside("sidestream::head_loss", "[[2, 3, 8], [50, 8]]").flops, 4 * 6 * 50);
  EXPECT_EQ(beside("sidestream::head_loss_and_gradients", "[[2, 3, 8], [50, 8]]").bytes,
            4 * 2 * 6 * 50);
  EXPECT_FALSE(work("sidestream::mlp", "[[2, 3, 8], [9, 32], [32, 8]]").beside_products);
  EXPECT_FALSE(work("aten::mm", "[[8,3],[3,5]]").beside_products);
}

TEST(OperatorWorkTest, fused_norms_count_their_elements) {
  EXPECT_EQ(work("sidestream::norm", "[[2, 3, 8]]", R"(["float"])").bytes, 4 * 2 * 48);
  EXPECT_EQ(work("sidestream::norm", "[[2, 3, 8]]").element_flops, 7 * 48);
  EXPECT_EQ(work("sidestream::add_norm", "[[2, 3, 8], [2, 3, 8]]", R"(["float","float"])").bytes,
            4 * 4 * 48);
  EXPECT_EQ(work("sidestream::norm_backward", "[[2, 3, 8]]", R"(["float"])").bytes, 4 * 3 * 48);
}

TEST(OperatorWorkTest, fused_attention_counts_like_the_separate_one) {
  const auto plain = work("aten::_scaled_dot_product_flash_attention",
                          "[[2, 4, 3, 2], [2, 4, 3, 2], [2, 4, 3, 2]]");
  const auto backward = work("aten::_scaled_dot_product_flash_attention_backward",
                             "[[2, 4, 3, 2], [2, 4, 3, 2], [2, 4, 3, 2], [2, 4, 3, 2]]");

  EXPECT_EQ(work("sidestream::attention", "[[2, 3, 24]]").flops, plain.flops);
  EXPECT_EQ(work("sidestream::attention_backward", "[[2, 3, 24], [2, 3, 8]]").flops,
            backward.flops);
  EXPECT_FALSE(work("sidestream::mlp", "[[2, 3, 8], [9, 32], [32, 8]]").flops);
}

TEST(OperatorWorkTest, convolutions_need_stride_and_padding) {
  const std::string shapes = "[[2,3,9,9],[6,3,3,3],[],[],[],[],[],[],[]]";
  const std::string values =
      R"(["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])";  // 5 x 5 results

  EXPECT_EQ(work("aten::convolution", shapes, "", values).flops, 2.0 * 2 * 6 * 5 * 5 * 3 * 3 * 3);
  EXPECT_EQ(work("aten::convolution", shapes).flops, std::nullopt);
  EXPECT_EQ(work("aten::convolution_backward", "[[2,6,5,5],[2,3,9,9],[6,3,3,3]]", "",
                 R"(["","","","","[2, 2]","[1, 1]","[1, 1]","False","","1","[False, True, True]"])")
                .flops,
            2.0 * 2 * 6 * 5 * 5 * 3 * 3 * 3);
}

TEST(OperatorWorkTest, what_is_not_known_has_no_flops) {
  const OperatorWork done = work("own::op", "[[8,3],[3,5]]");

  EXPECT_EQ(done.flops, std::nullopt);
  EXPECT_EQ(done.element_flops, std::nullopt);
}

TEST(OperatorWorkTest, what_only_passes_work_on_counts_nothing) {
  for (const char* name : {"aten::linear", "aten::matmul", "aten::view", "aten::transpose"}) {
    EXPECT_EQ(work(name, "[[8,3],[3,5]]", R"(["float","float"])").flops, std::nullopt) << name;
    EXPECT_EQ(work(name, "[[8,3],[3,5]]", R"(["float","float"])").bytes, std::nullopt) << name;
  }
}

TEST(OperatorWorkTest, shapes_that_do_not_fit_the_operator) {
  for (const char* shapes : {"", "[]", "[[8,3]]", "[[8,3],[4,5]]", "[[8],[8]]", "[[8,3],[3]]",
                             "[[],[]]", "[[[8,3],[3,5]]]", "nonsense"}) {
    for (const char* name :
         {"aten::mm", "aten::addmm", "aten::convolution", "aten::convolution_backward",
          "aten::_scaled_dot_product_flash_attention",
          "aten::_scaled_dot_product_flash_attention_backward"})
      EXPECT_EQ(work(name, shapes).flops, std::nullopt) << name << " " << shapes;
  }
}

}  // namespace
}  // namespace sidestream::analysis

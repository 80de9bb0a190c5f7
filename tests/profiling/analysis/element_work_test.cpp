// FLOPs of norms and softmax against formulas that count their own operations.
#include "profiling/analysis/element_work.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/analysis/operator_work.hpp"

namespace sidestream::analysis {
namespace {

// A number that counts what is done with it.
struct Number {
  double value = 0;
  long* operations = nullptr;

  Number with(double result, long how_many = 1) const {
    *operations += how_many;
    return {result, operations};
  }
  Number operator+(const Number& other) const { return with(value + other.value); }
  Number operator-(const Number& other) const { return with(value - other.value); }
  Number operator*(const Number& other) const { return with(value * other.value); }
  Number operator/(const Number& other) const { return with(value / other.value); }
};
Number exponential(const Number& one) { return one.with(one.value); }
Number larger(const Number& one, const Number& other) {
  return one.with(one.value > other.value ? one.value : other.value);
}

using Row = std::vector<Number>;
constexpr int kElements = 1000;

// Operations an element of a row: what is done once a row is lost in the division.
template <typename Formula>
long per_element(Formula formula) {
  long operations = 0;
  const auto row = [&] { return Row(kElements, Number{1, &operations}); };
  formula(row(), row(), row(), Number{0, &operations});
  return operations / kElements;
}

double counted(const std::string& name, const std::string& shapes) {
  return work_of({.name = name, .shapes = shapes, .types = "", .values = ""})
             .element_flops.value_or(0) /
         kElements;
}

// [x, weight, bias]
long norm() {
  return per_element([](const Row& x, const Row& weight, const Row& bias, Number sum) {
    Number squares = sum, count = sum;
    for (const Number& one : x) sum = sum + one;
    const Number mean = sum / count;
    for (const Number& one : x) {
      const Number difference = one - mean;
      squares = squares + difference * difference;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      // The difference is the one above.
      const Number normalised = Number{x[i].value, x[i].operations} * squares;
      (void)(normalised * weight[i] + bias[i]);
    }
  });
}

// [gradient, x, weight]
long norm_backward() {
  return per_element([](const Row& gradient, const Row& x, const Row& weight, Number sum) {
    Number products = sum, mean = sum, scale = sum, of_bias = sum;
    Row normalised, weighted;
    for (std::size_t i = 0; i < x.size(); ++i) {
      normalised.push_back((x[i] - mean) * scale);
      weighted.push_back(gradient[i] * weight[i]);
      sum = sum + weighted[i];
      products = products + weighted[i] * normalised[i];
    }
    Row of_weight(x.size(), mean);
    for (std::size_t i = 0; i < x.size(); ++i) {
      (void)((weighted[i] - sum - normalised[i] * products) * scale);
      of_weight[i] = of_weight[i] + gradient[i] * normalised[i];
      of_bias = of_bias + gradient[i];
    }
  });
}

long rms_norm() {
  return per_element([](const Row& x, const Row& weight, const Row&, Number scale) {
    Number squares = scale;
    for (const Number& one : x) squares = squares + one * one;
    for (std::size_t i = 0; i < x.size(); ++i) (void)(x[i] * scale * weight[i]);
  });
}

long rms_norm_backward() {
  return per_element([](const Row& gradient, const Row& x, const Row& weight, Number scale) {
    Number products = scale;
    Row normalised, weighted, of_weight(x.size(), scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      normalised.push_back(x[i] * scale);
      weighted.push_back(gradient[i] * weight[i]);
      products = products + weighted[i] * normalised[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      (void)((weighted[i] - normalised[i] * products) * scale);
      of_weight[i] = of_weight[i] + gradient[i] * normalised[i];
    }
  });
}

long softmax() {
  return per_element([](const Row& x, const Row&, const Row&, Number sum) {
    Number most = sum;
    Row powers;
    for (const Number& one : x) most = larger(most, one);
    for (const Number& one : x) powers.push_back(exponential(one - most));
    for (const Number& one : powers) sum = sum + one;
    for (const Number& one : powers) (void)(one / sum);
  });
}

long softmax_backward() {
  return per_element([](const Row& gradient, const Row& y, const Row&, Number sum) {
    for (std::size_t i = 0; i < y.size(); ++i) sum = sum + gradient[i] * y[i];
    for (std::size_t i = 0; i < y.size(); ++i) (void)((gradient[i] - sum) * y[i]);
  });
}

long log_softmax_backward() {
  return per_element([](const Row& gradient, const Row& y, const Row&, Number sum) {
    for (const Number& one : gradient) sum = sum + one;
    for (std::size_t i = 0; i < y.size(); ++i) (void)(gradient[i] - exponential(y[i]) * sum);
  });
}

TEST(ElementWorkTest, norms_with_a_mean) {
  EXPECT_EQ(counted("aten::native_layer_norm", "[[10,100],[],[100],[100],[]]"), norm());
  for (const char* name :
       {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"})
    EXPECT_EQ(counted(name, "[[2,4,5,25],[4],[4],[4],[4],[],[],[]]"), norm()) << name;
  EXPECT_EQ(counted("aten::native_group_norm", "[[2,4,5,25],[4],[4],[],[],[],[],[]]"), norm());
}

TEST(ElementWorkTest, their_backward) {
  EXPECT_EQ(counted("aten::native_layer_norm_backward",
                    "[[10,100],[10,100],[],[10,1],[10,1],[100],[100],[]]"),
            norm_backward());
  EXPECT_EQ(counted("aten::native_group_norm_backward",
                    "[[2,4,5,25],[2,4,5,25],[2,2],[2,2],[4],[],[],[],[],[]]"),
            norm_backward());
  for (const char* name : {"aten::native_batch_norm_backward", "aten::cudnn_batch_norm_backward",
                           "aten::miopen_batch_norm_backward"})
    EXPECT_EQ(counted(name, "[[2,4,5,25],[2,4,5,25],[4],[4],[4],[4],[4],[]]"), norm_backward())
        << name;
}

TEST(ElementWorkTest, norms_without_a_mean) {
  EXPECT_EQ(counted("aten::_fused_rms_norm", "[[10,100],[],[100],[]]"), rms_norm());
  EXPECT_EQ(counted("aten::_fused_rms_norm_backward", "[[10,100],[10,100],[],[10,1],[100],[]]"),
            rms_norm_backward());
}

TEST(ElementWorkTest, softmax_and_its_logarithm) {
  EXPECT_EQ(counted("aten::_softmax", "[[10,100],[],[]]"), softmax());
  EXPECT_EQ(counted("aten::_softmax_backward_data", "[[10,100],[10,100],[],[]]"),
            softmax_backward());
  EXPECT_EQ(counted("aten::_log_softmax_backward_data", "[[10,100],[10,100],[],[]]"),
            log_softmax_backward());
}

}  // namespace
}  // namespace sidestream::analysis

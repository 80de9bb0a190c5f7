// Products in the queue's own hands: what they compute, and where they are used.
#include "model/device/multiply.hpp"
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

constexpr at::ScalarType k16Bits[] = {at::kBFloat16, at::kHalf};

struct ProductsTest : testing::Test {
  ProductsTest() { torch::manual_seed(3); }
};

Tensor exact(const Tensor& left, const Tensor& right) { return at::mm(wide(left), wide(right)); }

// Rows further apart than they are wide.
Tensor apart(const Tensor& matrix, std::int64_t stride) {
  const Tensor wider = at::full({matrix.size(0), stride}, 1e4, matrix.options());
  return wider.narrow(1, 0, matrix.size(1)).copy_(matrix);
}

// What lies behind the columns of a matrix whose rows are `stride` apart.
Tensor beside(const Tensor& matrix, std::int64_t stride) {
  return matrix.as_strided({matrix.size(0), stride - matrix.size(1)}, {stride, 1},
                           matrix.storage_offset() + matrix.size(1));
}

// As it lies, or as the transposed view of what lies the other way round.
Tensor turned(const Tensor& matrix) { return matrix.t().contiguous().t(); }

TEST_F(ProductsTest, multiply_takes_factors_either_way_round_and_rows_apart) {
  const LaunchQueuePtr queue = tested_queue_with_products();
  for (const at::ScalarType dtype : k16Bits) {
    const Tensor left = device::random({40, 24}, dtype), right = device::random({24, 56}, dtype),
                 expected = exact(left, right);
    for (const Tensor& one : {left, turned(left), apart(left, 64)}) {
      for (const Tensor& other : {right, turned(right), apart(right, 72)}) {
        const Tensor padded = apart(at::zeros({40, 56}, left.options()), 64);
        ASSERT_TRUE(queue->products && Products::take_plain(one, other, padded));

        multiply_into(*queue, padded, one, other);

        expect_near(multiply(*queue, one, other), expected, "product");
        expect_near(padded, expected, "product with rows apart");
        EXPECT_TRUE(beside(padded, 64).eq(1e4).all().item<bool>()) << "what lies between rows";
      }
    }
  }
}

TEST_F(ProductsTest, own_products_are_added_to_float32_or_written_there_unrounded) {
  const LaunchQueuePtr queue = tested_queue_with_products();
  for (const at::ScalarType dtype : k16Bits) {
    const Tensor left = turned(device::random({40, 24}, dtype)),
                 right = device::random({24, 56}, dtype),
                 before = device::random({40, 56}, at::kFloat);
    for (const Tensor& sum : {before.clone(), apart(before, 64)}) {
      ASSERT_TRUE(own_product_added(*queue, left, right, sum));
      ASSERT_TRUE(own_product_added(*queue, left, right, sum));
      EXPECT_LT(relative_error(sum, wide(before) + 2 * exact(left, right)), 1e-6);

      ASSERT_TRUE(own_product(*queue, left, right, sum));
      EXPECT_LT(relative_error(sum, exact(left, right)), 1e-6);
    }
  }
}

TEST_F(ProductsTest, libtorch_has_the_products_where_there_are_no_own_ones) {
  const Tensor left = device::random({40, 24}, at::kBFloat16),
               right = device::random({24, 56}, at::kBFloat16),
               out = device::random({40, 56}, at::kBFloat16), before = out.clone();
  const LaunchQueuePtr queue = tested_queue();
  EXPECT_FALSE(own_product(*queue, left, right, out));
  EXPECT_FALSE(own_product_added(*queue, left, right, out));
  EXPECT_TRUE(torch::equal(out, before));
  EXPECT_TRUE(torch::equal(multiply(*queue, left, right), at::mm(left, right)));
}

TEST_F(ProductsTest, take_plain_leaves_to_libtorch_what_is_not_of_16_bits_or_not_aligned) {
  const auto drawn = [](at::IntArrayRef shape, at::ScalarType dtype = at::kBFloat16) {
    return device::random(shape, dtype);
  };
  const Tensor left = drawn({40, 24}), right = drawn({24, 56}), out = drawn({40, 56});

  EXPECT_TRUE(Products::take_plain(left, right, out));
  EXPECT_TRUE(Products::take_plain(left, right, out.to(at::kFloat)));
  EXPECT_TRUE(Products::take_plain(drawn({5, 24}), right, drawn({5, 56}))) << "any number of rows";
  EXPECT_FALSE(Products::take_plain(left.to(at::kFloat), right.to(at::kFloat), out));
  EXPECT_FALSE(Products::take_plain(left, right.to(at::kHalf), out));
  EXPECT_FALSE(Products::take_plain(left, right, out.to(at::kHalf)));
  EXPECT_FALSE(Products::take_plain(shifted(left), right, out));
  EXPECT_FALSE(Products::take_plain(left, shifted(right), out));
  EXPECT_FALSE(Products::take_plain(left, right, shifted(out)));
  EXPECT_FALSE(Products::take_plain(left, right, turned(out)));
  EXPECT_FALSE(Products::take_plain(drawn({40, 20}), drawn({20, 56}), out)) << "rows of 40 bytes";
  EXPECT_FALSE(Products::take_plain(drawn({40, 0}), drawn({0, 56}), out));
  EXPECT_FALSE(Products::take_plain(drawn({80, 48}).slice(1, 0, 48, 2), right, out));
}

TEST_F(ProductsTest, operands_at_any_place_are_taken_by_somebody) {
  const Operation operation = [](Operators& ops, const Tensors& in) -> Tensors {
    const Tensor x = shifted(in[0]);
    return {ops.linear(x, {in[1], in[2]}),
            ops.mlp(x, {in[1], shifted(in[2])}, {in[3], in[4]}, MlpKeeps::kAll)};
  };
  compare(operation,
          {device::random({2, 5, 24}, at::kDouble), device::random({24, 96}, at::kDouble, 0.3),
           device::random({96}, at::kDouble), device::random({96, 24}, at::kDouble, 0.3),
           device::random({24}, at::kDouble)},
          tested_queue_with_products());
}

// Passes on to others, and counts.
class CountedProducts : public Products {
 public:
  explicit CountedProducts(std::shared_ptr<const Products> others) : others_(std::move(others)) {}

  void multiply(const Tensor& left, const Tensor& right, const Tensor& out) const override {
    ++plain;
    others_->multiply(left, right, out);
  }
  void add(const Tensor& left, const Tensor& right, const Tensor& sum) const override {
    ++sums;
    others_->add(left, right, sum);
  }
  void with_bias(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Tensor& out) const override {
    ++biases;
    others_->with_bias(x, weight, bias, out);
  }
  mutable int plain = 0, sums = 0, biases = 0;

 private:
  std::shared_ptr<const Products> others_;
};

// A linear layer, an MLP and a loss, forward and backward.
std::shared_ptr<CountedProducts> counted(const LaunchQueuePtr& queue, at::ScalarType dtype,
                                         std::int64_t width, std::int64_t chunks = 3) {
  auto products = std::make_shared<CountedProducts>(queue->products);
  queue->products = products;
  DeviceOperators operators(queue);
  const auto drawn = [&](at::IntArrayRef shape) {
    return device::random(shape, dtype).requires_grad_();
  };
  const Tensor x = drawn({3, 8, width}),
               linear = operators.linear(x, {drawn({width, width}), drawn({width})}),
               mlp = operators.mlp(linear, {drawn({width, 4 * width}), drawn({4 * width})},
                                   {drawn({4 * width, width}), drawn({width})}, MlpKeeps::kAll);
  operators
      .next_token_loss(mlp, {.tokens_vc = drawn({40, width}), .positions_pc = {}, .tied = {}},
                       ids(40, {3, 8}), {.vocab_size = 40, .chunks = chunks})
      .backward();
  return products;
}

TEST_F(ProductsTest, all_are_used_in_16_bits_and_whole_chunks) {
  const auto counts = [](at::ScalarType dtype, std::int64_t width, std::int64_t chunks = 3) {
    const auto found = counted(tested_queue_with_products(), dtype, width, chunks);
    return std::tuple(found->biases, found->plain, found->sums);
  };
  constexpr int kLayers = 3 * 2;  // gradients of weights and inputs

  for (const at::ScalarType dtype : k16Bits) {
    EXPECT_EQ(counts(dtype, 24), std::tuple(3, kLayers + 3 * 2 + 1 /* the weight's first */, 2));
    EXPECT_EQ(counts(dtype, 24, /*chunks=*/1), std::tuple(3, kLayers + 3, 0));
    EXPECT_EQ(counts(dtype, 3), std::tuple(0, 0, 0));
  }
  EXPECT_EQ(counts(at::kFloat, 24), std::tuple(0, 0, 0));
}

}  // namespace
}  // namespace sidestream::model::device

// Whole products against LibTorch's in double: every orientation, sizes that fill no block, and
// shapes for which the product is computed the other way round.
#include "model/fused/product.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "model/fused/blocked_product.hpp"
#include "model/fused/float_strip_product.hpp"
#include "model/fused/panel_matrix.hpp"
#include "model/fused/product_in_blocks.hpp"

namespace sidestream::model::fused {
namespace {

using core::BFloat16;
using torch::Tensor;

struct Sizes {
  std::int64_t m, n, k;
};

class ProductTest : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

template <typename T>
constexpr at::ScalarType kType = sizeof(T) == 2 ? at::kBFloat16 : at::kFloat;

template <typename T>
Tensor random(std::int64_t rows, std::int64_t columns) {
  return torch::randn({rows, columns}).to(kType<T>);
}

Orientation orientation_of(bool turned) {
  return turned ? Orientation::kTransposed : Orientation::kAsIs;
}

// The product in double, and the sum of absolute products of each element: what rounding is
// measured by.
struct Exact {
  Exact(const Tensor& a, const Tensor& b)
      : product(a.to(at::kDouble).mm(b.to(at::kDouble))),
        scale(a.to(at::kDouble).abs().mm(b.to(at::kDouble).abs())) {}
  Tensor product, scale;
};

// Of bf16 half a unit in the last place; and the rounding of sums in fp32.
bool is_close(const Tensor& found, const Exact& exact) {
  const Tensor error = (found.to(at::kDouble) - exact.product).abs();
  const double unit = found.scalar_type() == at::kBFloat16 ? 4.2e-3 : 1.2e-7;
  return (error <= unit * exact.product.abs() + 6e-7 * exact.scale).all().item<bool>();
}

template <typename T>
using Into = void (*)(const ProductShape&, const LeftFactor<T>&, const RightFactor<T>&,
                      kernels::Rows<T>, Existing, NextRead);

template <typename T>
void expect_product(Into<T> into, const Sizes& sizes) {
  const auto [m, n, k] = sizes;
  const Tensor a = random<T>(m, k), b = random<T>(k, n), a_t = a.t().contiguous(),
               b_t = b.t().contiguous();
  const Exact exact(a, b);
  constexpr std::int64_t kBeside = 4;
  for (const bool left_turned : {false, true}) {
    for (const bool right_turned : {false, true}) {
      for (const Existing existing : {Existing::kReplace, Existing::kAdd}) {
        SCOPED_TRACE(testing::Message()
                     << left_turned << right_turned << static_cast<int>(existing));
        Tensor out = torch::full({m, n + kBeside}, 9.0f, kType<T>);
        if (existing == Existing::kAdd) out.narrow(1, 0, n).zero_();

        into({.m = m, .n = n, .k = k},
             {.data = data_of<T>(left_turned ? a_t : a),
              .stride = left_turned ? m : k,
              .orientation = orientation_of(left_turned)},
             {.data = data_of<T>(right_turned ? b_t : b),
              .stride = right_turned ? k : n,
              .orientation = orientation_of(right_turned)},
             {data_of<T>(out), n + kBeside}, existing, NextRead::kSoon);

        EXPECT_TRUE(is_close(out.narrow(1, 0, n), exact));
        EXPECT_TRUE(out.narrow(1, n, kBeside).eq(9.0f).all().item<bool>());
      }
    }
  }
}

TEST_P(ProductTest, product_into_equals_the_product_in_double) {
  expect_product<BFloat16>(product_into<BFloat16>, GetParam());
  expect_product<float>(product_into<float>, GetParam());
}

// As it lies a left factor of odd depth would need another column.
TEST(OddDepthTest, rows_of_a_turned_left_factor_need_not_be_even) {
  torch::manual_seed(5);
  for (const auto& [m, n, k] : {Sizes{40, 70, 7}, Sizes{96, 384, 255}, Sizes{33, 31, 1}}) {
    const Tensor a = random<BFloat16>(m, k), b = random<BFloat16>(k, n), a_t = a.t().contiguous();
    Tensor out = torch::empty({m, n}, at::kBFloat16);
    product_into<BFloat16>(
        {.m = m, .n = n, .k = k},
        {.data = data_of<BFloat16>(a_t), .stride = m, .orientation = Orientation::kTransposed},
        {.data = data_of<BFloat16>(b), .stride = n}, {data_of<BFloat16>(out), n});
    EXPECT_TRUE(is_close(out, Exact(a, b))) << m << " x " << n << " x " << k;
  }
}

template <typename T>
void expect_product_with_bias(const Sizes& sizes) {
  const auto [m, n, k] = sizes;
  const Tensor a = random<T>(m, k), b = random<T>(k, n), bias = random<T>(1, n);
  const Tensor one = torch::ones({m, 1}, kType<T>);
  constexpr std::int64_t kBeside = 4;
  Tensor out = torch::full({m, n + kBeside}, 9.0f, kType<T>);
  product_with_bias<T>({.m = m, .n = n, .k = k}, {.data = data_of<T>(a), .stride = k},
                       {.data = data_of<T>(b), .stride = n}, data_of<T>(bias),
                       {data_of<T>(out), n + kBeside});
  EXPECT_TRUE(out.narrow(1, n, kBeside).eq(9.0f).all().item<bool>());
  EXPECT_TRUE(
      is_close(out.narrow(1, 0, n), Exact(torch::cat({a, one}, 1), torch::cat({b, bias}, 0))));
}

TEST_P(ProductTest, product_with_bias_equals_the_product_with_a_column_of_ones) {
  expect_product_with_bias<BFloat16>(GetParam());
  expect_product_with_bias<float>(GetParam());
}

// Also where LibTorch's mm is the faster one.
TEST_P(ProductTest, blocksOfFp32_equal_the_product_in_double) {
  expect_product<float>(product_in_blocks_into<float>, GetParam());
}

// As product_into, through tiles.
template <typename T>
void float_strips_into(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                       kernels::Rows<T> out, Existing existing, NextRead /*next_read*/) {
  float_strip_product<T>(shape, a, b, kMaxPanelWidth, [&](const kernels::Tile& tile, TilePlace at) {
    const kernels::Rows<T> target{out.data + at.row * out.stride + at.column, out.stride};
    existing == Existing::kAdd ? kernels::add(tile, target) : kernels::store(tile, target);
  });
}

// Also where other units are faster.
TEST_P(ProductTest, productsOfFloatStrips_equal_the_product_in_double) {
  expect_product<float>(float_strips_into<float>, GetParam());
  expect_product<BFloat16>(float_strips_into<BFloat16>, GetParam());
}

// More rows than sums are kept of, and rows of A whole pages apart.
TEST(FloatStripProductTest, deepProducts_equal_the_product_in_double) {
  torch::manual_seed(7);
  expect_product<float>(float_strips_into<float>, {2900, 100, 400});
  expect_product<float>(float_strips_into<float>, {200, 100, 1024});
  expect_product<BFloat16>(float_strips_into<BFloat16>, {200, 70, 1025});
}

template <typename T>
Tensor product_on(int threads, const Tensor& a, const Tensor& b_t) {
  at::set_num_threads(threads);
  Tensor out = torch::empty({a.size(0), b_t.size(0)}, kType<T>);
  product_in_blocks_into<T>(
      {.m = a.size(0), .n = b_t.size(0), .k = a.size(1)},
      {.data = data_of<T>(a), .stride = a.size(1)},
      {.data = data_of<T>(b_t), .stride = a.size(1), .orientation = Orientation::kTransposed},
      {data_of<T>(out), b_t.size(0)}, Existing::kReplace, NextRead::kSoon);
  at::set_num_threads(1);
  return out;
}

TEST_P(ProductTest, loops_doNotDependOnThreads) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random<BFloat16>(m, k), b_t = random<BFloat16>(n, k);
  EXPECT_TRUE(product_on<BFloat16>(1, a, b_t).equal(product_on<BFloat16>(3, a, b_t)));

  const Tensor wide_a = random<float>(m, k), wide_b_t = random<float>(n, k);
  EXPECT_TRUE(product_on<float>(1, wide_a, wide_b_t).equal(product_on<float>(3, wide_a, wide_b_t)));
}

// The same matrix in panels of this width.
template <typename T>
PanelMatrix<T> in_panels(const Tensor& matrix, std::int64_t width) {
  const std::int64_t rows = matrix.size(0), columns = matrix.size(1);
  PanelMatrix<T> result(torch::zeros({(columns + width - 1) / width, rows, width}, kType<T>), rows,
                        columns);
  for (std::int64_t panel = 0; panel < result.storage.size(0); ++panel) {
    const std::int64_t first = panel * width, count = std::min(width, columns - first);
    result.storage[panel].narrow(1, 0, count).copy_(matrix.narrow(1, first, count));
  }
  return result;
}

template <typename T>
Tensor product_of(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                  Existing existing) {
  Tensor out = torch::zeros({shape.m, shape.n}, kType<T>);
  product_in_blocks_into<T>(shape, a, b, {data_of<T>(out), shape.n}, existing, NextRead::kSoon);
  return out;
}

struct HiddenLayer {
  std::int64_t rows, columns, panel_width;
};

// What products of an MLP take of its hidden layer, h [rows, hidden]: h w, h^T y and x^T h.
template <typename T>
void expect_products_of_panels(const HiddenLayer& layer, Existing existing) {
  constexpr std::int64_t kWidth = 70;
  const auto [rows, hidden, panel_width] = layer;
  const Tensor h = random<T>(rows, hidden), w_t = random<T>(kWidth, hidden),
               y = random<T>(rows, kWidth);
  const PanelMatrix<T> panels = in_panels<T>(h, panel_width);
  const LeftFactor<T> y_t{
      .data = data_of<T>(y), .stride = kWidth, .orientation = Orientation::kTransposed};

  const Tensor hw = product_of<T>(
      {.m = rows, .n = kWidth, .k = hidden}, panels.left(),
      {.data = data_of<T>(w_t), .stride = hidden, .orientation = Orientation::kTransposed},
      existing);
  const Tensor hy =
      product_of<T>({.m = hidden, .n = kWidth, .k = rows}, panels.left(Orientation::kTransposed),
                    {.data = data_of<T>(y), .stride = kWidth}, existing);
  const Tensor yh =
      product_of<T>({.m = kWidth, .n = hidden, .k = rows}, y_t, panels.right(), existing);

  EXPECT_TRUE(is_close(hw, Exact(h, w_t.t())));
  EXPECT_TRUE(is_close(hy, Exact(h.t(), y)));
  EXPECT_TRUE(is_close(yh, Exact(y.t(), h)));
}

// fp32 on every processor, bf16 where it is multiplied in blocks.
TEST(PanelsTest, factorsInPanels_giveTheSameProducts) {
  torch::manual_seed(6);
  for (const std::int64_t rows : {6, 100, 700}) {
    for (const auto& [hidden, width] : {std::pair{96, 96}, {416, 224}, {1536, 384}, {512, 192}}) {
      for (const Existing existing : {Existing::kReplace, Existing::kAdd}) {
        SCOPED_TRACE(testing::Message() << rows << " " << hidden << static_cast<int>(existing));
        expect_products_of_panels<float>({rows, hidden, width}, existing);
        if (has_bf16_units()) expect_products_of_panels<BFloat16>({rows, hidden, width}, existing);
      }
    }
  }
}

// Large products that are read later, in rows that are lines of the cache and in others.
template <typename T>
void expect_same_for_later(std::int64_t beside, std::int64_t depth) {
  constexpr std::int64_t kRows = 1100, kColumns = 1056;
  const Tensor a = random<T>(kRows, depth), b = random<T>(depth, kColumns);
  const std::int64_t stride = kColumns + beside;
  Tensor soon = torch::zeros({kRows, stride}, kType<T>), later = torch::zeros_like(soon);
  for (const auto& [out, next_read] :
       {std::pair{soon, NextRead::kSoon}, std::pair{later, NextRead::kLater}}) {
    product_in_blocks_into<T>({.m = kRows, .n = kColumns, .k = depth},
                              {.data = data_of<T>(a), .stride = depth},
                              {.data = data_of<T>(b), .stride = kColumns},
                              {data_of<T>(out), stride}, Existing::kReplace, next_read);
  }

  EXPECT_TRUE(later.equal(soon)) << beside << " beside, depth " << depth;
  EXPECT_TRUE(is_close(soon.narrow(1, 0, kColumns), Exact(a, b)));
}

// Ranks with fewer rows each have the sums of one with all of them.
TEST(FewRowsTest, rows_haveTheSameBitsHoweverManyPassTogether) {
  torch::manual_seed(5);
  for (const std::int64_t k : {64, 768, 770, 1280}) {
    constexpr std::int64_t kMany = 640, kFew = 100, kColumns = 424;
    const Tensor a = random<BFloat16>(kMany, k), b = random<BFloat16>(k, kColumns);
    const auto rows_of = [&](std::int64_t first, std::int64_t rows, Existing existing) {
      Tensor out = torch::zeros({rows, kColumns}, at::kBFloat16);
      product_into<BFloat16>({.m = rows, .n = kColumns, .k = k},
                             {.data = data_of<BFloat16>(a) + first * k, .stride = k},
                             {.data = data_of<BFloat16>(b), .stride = kColumns},
                             kernels::Rows<BFloat16>{data_of<BFloat16>(out), kColumns}, existing);
      return out;
    };
    for (const Existing existing : {Existing::kReplace, Existing::kAdd}) {
      const Tensor all = rows_of(0, kMany, existing);
      for (const std::int64_t first : {std::int64_t{0}, kMany - kFew})
        EXPECT_TRUE(rows_of(first, kFew, existing).equal(all.narrow(0, first, kFew)))
            << "depth " << k << ", from row " << first;
    }
  }
}

TEST(NextReadTest, productsThatAreReadLater_areTheSame) {
  torch::manual_seed(7);
  for (const std::int64_t beside : {0, 5}) {
    for (const std::int64_t depth : {40, 800}) {  // by strips where they pay, and by blocks
      expect_same_for_later<BFloat16>(beside, depth);
      expect_same_for_later<float>(beside, depth);
    }
  }
}

// LibTorch's parallel loops are templates, and run on one thread in a program built without OpenMP.
TEST(ProductThreadsTest, columns_areSharedAmongThreads) {
  constexpr std::int64_t kRows = 64, kColumns = 512, kDepth = 64;
  const Tensor a = torch::ones({kRows, kDepth}, at::kBFloat16);
  const Tensor b = torch::ones({kDepth, kColumns}, at::kBFloat16);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  at::set_num_threads(2);

  product<BFloat16>(
      {.m = kRows, .n = kColumns, .k = kDepth}, {.data = data_of<BFloat16>(a), .stride = kDepth},
      {.data = data_of<BFloat16>(b), .stride = kColumns}, [&](const kernels::Tile&, TilePlace) {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
  at::set_num_threads(1);

  EXPECT_EQ(threads.size(), 2u);
}

// Few rows against many columns are turned; so are both factors where the left one is the wider.
// The last three are deep: a panel that fits the cache, one that is kept, one that is packed again.
INSTANTIATE_TEST_SUITE_P(Sizes, ProductTest,
                         testing::Values(Sizes{2, 2, 2}, Sizes{64, 256, 128}, Sizes{7, 300, 66},
                                         Sizes{300, 6, 66}, Sizes{31, 515, 96}, Sizes{515, 32, 200},
                                         Sizes{129, 130, 258}, Sizes{16, 1000, 34},
                                         Sizes{290, 270, 530}, Sizes{70, 400, 1500},
                                         Sizes{520, 384, 1800}, Sizes{520, 384, 5600}));

}  // namespace
}  // namespace sidestream::model::fused

// Whole products of bf16 against LibTorch's in double: every orientation, sizes that fill no block,
// and shapes for which the product is computed the other way round.
#include "model/fused/product.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "model/fused/panel_matrix.hpp"

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
  static Tensor random(std::int64_t rows, std::int64_t columns) {
    return torch::randn({rows, columns}).to(at::kBFloat16);
  }
};

Orientation orientation_of(bool turned) {
  return turned ? Orientation::kTransposed : Orientation::kAsIs;
}

// Half a unit in the last place of bf16, and the rounding of sums in fp32.
bool is_close(const Tensor& found, const Tensor& exact) {
  return found.to(at::kDouble).allclose(exact, 4.2e-3, 1e-4);
}

TEST_P(ProductTest, product_into_equals_the_product_in_double) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random(m, k), b = random(k, n), a_t = a.t().contiguous(),
               b_t = b.t().contiguous();
  const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
  constexpr std::int64_t kBeside = 4;
  for (const bool left_turned : {false, true}) {
    for (const bool right_turned : {false, true}) {
      for (const Existing existing : {Existing::kReplace, Existing::kAdd}) {
        SCOPED_TRACE(testing::Message()
                     << left_turned << right_turned << static_cast<int>(existing));
        Tensor out = torch::full({m, n + kBeside}, 9.0f, at::kBFloat16);
        if (existing == Existing::kAdd) out.narrow(1, 0, n).zero_();

        product_into<BFloat16>({.m = m, .n = n, .k = k},
                               {.data = data_of<BFloat16>(left_turned ? a_t : a),
                                .stride = left_turned ? m : k,
                                .orientation = orientation_of(left_turned)},
                               {.data = data_of<BFloat16>(right_turned ? b_t : b),
                                .stride = right_turned ? k : n,
                                .orientation = orientation_of(right_turned)},
                               {data_of<BFloat16>(out), n + kBeside}, existing);

        EXPECT_TRUE(is_close(out.narrow(1, 0, n), exact));
        EXPECT_TRUE(out.narrow(1, n, kBeside).eq(9.0f).all().item<bool>());
      }
    }
  }
}

TEST_P(ProductTest, product_into_doesNotDependOnThreads) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random(m, k), b_t = random(n, k);
  const auto product_on = [&, m = m, n = n, k = k](int threads) {
    at::set_num_threads(threads);
    Tensor out = torch::empty({m, n}, at::kBFloat16);
    product_into<BFloat16>(
        {.m = m, .n = n, .k = k}, {.data = data_of<BFloat16>(a), .stride = k},
        {.data = data_of<BFloat16>(b_t), .stride = k, .orientation = Orientation::kTransposed},
        {data_of<BFloat16>(out), n});
    at::set_num_threads(1);
    return out;
  };

  EXPECT_TRUE(product_on(1).equal(product_on(3)));
}

// The same matrix the way it lies between products, where this processor has such a way.
PanelMatrix<BFloat16> in_panels(const Tensor& matrix) {
  auto result = empty_panels<BFloat16>(matrix.size(0), matrix.size(1), matrix.options());
  if (result.panels.width == 0) {
    result.storage.copy_(matrix);
    return result;
  }
  for (std::int64_t panel = 0; panel < result.storage.size(0); ++panel) {
    const std::int64_t first = panel * result.panels.width;
    const std::int64_t columns = std::min(result.panels.width, result.columns - first);
    result.storage[panel].narrow(1, 0, columns).copy_(matrix.narrow(1, first, columns));
  }
  return result;
}

Tensor product_of(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                  const RightFactor<BFloat16>& b, Existing existing) {
  Tensor out = torch::zeros({shape.m, shape.n}, at::kBFloat16);
  product_into<BFloat16>(shape, a, b, {data_of<BFloat16>(out), shape.n}, existing);
  return out;
}

// What products of an MLP take of its hidden layer, h [rows, hidden]: h w, h^T y and x^T h.
TEST(PanelsTest, factorsInPanels_giveTheSameProducts) {
  torch::manual_seed(6);
  for (const std::int64_t rows : {6, 100, 700}) {
    for (const std::int64_t hidden : {96, 416, 1536}) {
      constexpr std::int64_t kWidth = 70;
      const Tensor h = torch::randn({rows, hidden}).to(at::kBFloat16),
                   w_t = torch::randn({kWidth, hidden}).to(at::kBFloat16),
                   y = torch::randn({rows, kWidth}).to(at::kBFloat16);
      const PanelMatrix<BFloat16> panels = in_panels(h);
      const LeftFactor<BFloat16> y_t{
          .data = data_of<BFloat16>(y), .stride = kWidth, .orientation = Orientation::kTransposed};
      for (const Existing existing : {Existing::kReplace, Existing::kAdd}) {
        SCOPED_TRACE(testing::Message() << rows << " " << hidden << static_cast<int>(existing));

        const Tensor hw = product_of({.m = rows, .n = kWidth, .k = hidden}, panels.left(),
                                     {.data = data_of<BFloat16>(w_t),
                                      .stride = hidden,
                                      .orientation = Orientation::kTransposed},
                                     existing);
        const Tensor hy =
            product_of({.m = hidden, .n = kWidth, .k = rows}, panels.left(Orientation::kTransposed),
                       {.data = data_of<BFloat16>(y), .stride = kWidth}, existing);
        const Tensor yh =
            product_of({.m = kWidth, .n = hidden, .k = rows}, y_t, panels.right(), existing);

        const Tensor exact = h.to(at::kDouble);
        EXPECT_TRUE(is_close(hw, exact.mm(w_t.to(at::kDouble).t())));
        EXPECT_TRUE(is_close(hy, exact.t().mm(y.to(at::kDouble))));
        EXPECT_TRUE(is_close(yh, y.to(at::kDouble).t().mm(exact)));
      }
    }
  }
}

// Large products that are read later, in rows that are lines of the cache and in others.
TEST(NextReadTest, productsThatAreReadLater_areTheSame) {
  constexpr std::int64_t kRows = 1100, kColumns = 1056, kDepth = 40;
  torch::manual_seed(7);
  const Tensor a = torch::randn({kRows, kDepth}).to(at::kBFloat16),
               b = torch::randn({kDepth, kColumns}).to(at::kBFloat16);
  for (const std::int64_t beside : {0, 5}) {
    const std::int64_t stride = kColumns + beside;
    Tensor soon = torch::zeros({kRows, stride}, at::kBFloat16), later = torch::zeros_like(soon);
    for (const auto& [out, next_read] :
         {std::pair{soon, NextRead::kSoon}, std::pair{later, NextRead::kLater}}) {
      product_into<BFloat16>({.m = kRows, .n = kColumns, .k = kDepth},
                             {.data = data_of<BFloat16>(a), .stride = kDepth},
                             {.data = data_of<BFloat16>(b), .stride = kColumns},
                             {data_of<BFloat16>(out), stride}, Existing::kReplace, next_read);
    }

    EXPECT_TRUE(later.equal(soon)) << beside;
    EXPECT_TRUE(is_close(soon.narrow(1, 0, kColumns), a.to(at::kDouble).mm(b.to(at::kDouble))));
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

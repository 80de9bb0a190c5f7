// DeviceKernels over something that can run a body on a grid of blocks: CUDA, or loops on the
// processor in tests. Checks jobs, gives them types, and says how large the grid is.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "model/device/device_kernels.hpp"
#include "model/device/embedding_tiles.hpp"
#include "model/device/kernel_bodies.hpp"

namespace sidestream::model::device {

struct GridSize {
  std::int64_t blocks_x = 1, blocks_y = 1, threads = kWarp;
  std::int64_t memory_bytes = 0;  // of a block, for what its threads fetch
};

// Grid: run(size, body, stream) calls body(block, place) for every place of the grid;
// run_at_once() the same with no more blocks in x than there is room for at once;
// most_memory_bytes() is what a block of it can have.
template <typename Grid>
class KernelsOn : public DeviceKernels {
 public:
  explicit KernelsOn(Grid grid = {}) : grid_(std::move(grid)) {}

  void norm_forward(const NormForwardJob& job, DeviceStream stream) override {
    check(job);
    if (job.rows == 0) return;
    const Access access =
        access_of(job.width, job.dtype,
                  {job.residual, job.branch, job.weight, job.bias, job.sum, job.normed});
    with_type(job.dtype, "norm", [&]<typename T>(T*) {
      with_held_and_access<NormPass::kForward>(job.width, access, [&](auto held, auto how) {
        const NormForwardRows<T> rows{.residual = in<T>(job.residual),
                                      .branch = in<T>(job.branch),
                                      .weight = in<T>(job.weight),
                                      .bias = in<T>(job.bias),
                                      .sum = out<T>(job.sum),
                                      .normed = out<T>(job.normed),
                                      .mean = job.mean,
                                      .rstd = job.rstd,
                                      .rows = job.rows,
                                      .width = job.width,
                                      .eps = job.eps};
        const std::int64_t threads = norm_threads<NormPass::kForward>(job.width);
        grid_.run(
            {.blocks_x = norm_blocks<NormPass::kForward>(job.rows, job.width),
             .threads = threads,
             .memory_bytes = FetchedRow<T, held(), how()>::bytes(threads, kNormForwardOperands)},
            NormForwardBody<T, held(), how()>{rows}, stream);
      });
    });
  }

  void norm_backward(const NormBackwardJob& job, DeviceStream stream) override {
    check(job);
    if (job.rows == 0) return;
    const Access access = access_of(job.width, job.dtype,
                                    {job.x, job.normed_grad, job.sum_grad, job.weight, job.x_grad});
    const std::int64_t parts = norm_parts(job.rows, job.width);
    with_type(job.dtype, "norm_backward", [&]<typename T>(T*) {
      with_held_and_access<NormPass::kBackward>(job.width, access, [&](auto held, auto how) {
        const NormBackwardRows<T> rows{.x = in<T>(job.x),
                                       .normed_grad = in<T>(job.normed_grad),
                                       .sum_grad = in<T>(job.sum_grad),
                                       .weight = in<T>(job.weight),
                                       .mean = job.mean,
                                       .rstd = job.rstd,
                                       .x_grad = out<T>(job.x_grad),
                                       .weight_partial = job.partial,
                                       .bias_partial = job.partial + parts * job.width,
                                       .x_partial = job.partial + 2 * parts * job.width,
                                       .rows = job.rows,
                                       .width = job.width};
        const std::int64_t threads = norm_threads<NormPass::kBackward>(job.width);
        grid_.run(
            {.blocks_x = parts,
             .threads = threads,
             .memory_bytes = FetchedRow<T, held(), how()>::bytes(threads, kNormBackwardOperands)},
            NormBackwardBody<T, held(), how()>{rows}, stream);
      });
    });
  }

  void gelu_forward(const GeluForwardJob& job, DeviceStream stream) override {
    if (job.count == 0) return;
    // A last chunk that is not whole goes element by element: any count will do.
    const Access access = access_of({job.before, job.activation});
    with_type(job.dtype, "gelu", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const GeluForwardRange<T> range{in<T>(job.before), out<T>(job.activation), job.count};
        grid_.run({.blocks_x = column_tiles<T>(job.count), .threads = kElementThreads},
                  GeluForwardBody<T, how()>{range}, stream);
      });
    });
  }

  void gelu_backward(const GeluBackwardJob& job, DeviceStream stream) override {
    if (job.rows == 0 || job.width == 0) return;
    const Access access =
        access_of(job.width, job.dtype, {job.before, job.gradient, job.activation});
    with_type(job.dtype, "gelu_backward", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const GeluBackwardRows<T> rows{.before = in<T>(job.before),
                                       .gradient = out<T>(job.gradient),
                                       .activation = out<T>(job.activation),
                                       .bias_partial = job.bias_partial,
                                       .rows = job.rows,
                                       .width = job.width};
        grid_.run({.blocks_x = column_tiles<T>(job.width),
                   .blocks_y = row_parts(job.rows, job.width),
                   .threads = kElementThreads},
                  GeluBackwardBody<T, how()>{rows}, stream);
      });
    });
  }

  void row_sums(const RowSumsJob& job, DeviceStream stream) override {
    if (job.rows == 0 || job.width == 0) return;
    const Access access = access_of(job.width, job.dtype, {job.x});
    with_type(job.dtype, "row_sums", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const RowSums<T> sums{
            .x = in<T>(job.x), .partial = job.partial, .rows = job.rows, .width = job.width};
        grid_.run({.blocks_x = column_tiles<T>(job.width),
                   .blocks_y = row_parts(job.rows, job.width),
                   .threads = kElementThreads},
                  RowSumsBody<T, how()>{sums}, stream);
      });
    });
  }

  void scale(const ScaleJob& job, DeviceStream stream) override {
    if (job.count == 0) return;
    const Access access = access_of({job.values});
    with_type(job.dtype, "scale", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const ScaledRange<T> range{out<T>(job.values), job.factor, job.count};
        grid_.run({.blocks_x = column_tiles<T>(job.count), .threads = kElementThreads},
                  ScaleBody<T, how()>{range}, stream);
      });
    });
  }

  void embed(const EmbedJob& job, DeviceStream stream) override {
    if (job.batch == 0 || job.time == 0 || job.width == 0) return;
    const Access access = access_of(job.width, job.dtype, {job.tokens, job.positions, job.out});
    with_type(job.dtype, "embed", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const EmbeddedRows<T> rows{.ids = job.ids,
                                   .tokens = in<T>(job.tokens),
                                   .positions = in<T>(job.positions),
                                   .out = out<T>(job.out),
                                   .batch = job.batch,
                                   .time = job.time,
                                   .vocabulary = job.vocabulary,
                                   .width = job.width};
        grid_.run({.blocks_x = column_tiles<T>(job.width),
                   .blocks_y = row_parts(job.time, job.width),
                   .threads = kElementThreads},
                  EmbedBody<T, how()>{rows}, stream);
      });
    });
  }

  void token_gradients(const TokenGradientsJob& job, DeviceStream stream) override {
    if (job.count == 0 || job.width == 0) return;
    const Access access = access_of(job.width, job.dtype, {job.gradients, job.target});
    with_type(job.dtype, "token_gradients", [&]<typename T>(T*) {
      with_access(access, [&](auto how) {
        const TokenGradients<T> gradients{.grads = in<T>(job.gradients),
                                          .ids = job.ids,
                                          .order = job.order,
                                          .pieces = job.pieces,
                                          .target = out<T>(job.target),
                                          .count = job.count,
                                          .vocabulary = job.vocabulary,
                                          .width = job.width};
        const GridSize size{.blocks_x = token_tiles(job.count),
                            .blocks_y = column_tiles<T>(job.width),
                            .threads = kElementThreads};
        grid_.run(size, TokenGradientsBody<T, how()>{gradients}, stream);
        grid_.run(size, TokenPiecesBody<T, how()>{gradients}, stream);
      });
    });
  }

  void column_sums(const ColumnSumsJob& job, DeviceStream stream) override {
    if (job.width == 0) return;
    with_type(job.dtype, "column_sums", [&]<typename T>(T*) {
      const ColumnSums<T> sums{.partial = job.partial,
                               .first = out<T>(job.first),
                               .second = out<T>(job.second),
                               .third = out<T>(job.third),
                               .parts = job.parts,
                               .width = job.width};
      grid_.run({.blocks_x = divided_up(job.width, kWarp),
                 .blocks_y = job.second == nullptr  ? 1
                             : job.third == nullptr ? 2
                                                    : 3,
                 .threads = kColumnSumThreads},
                ColumnSumsBody<T>{sums}, stream);
    });
  }

  void cross_entropy(const CrossEntropyJob& job, DeviceStream stream) override {
    check(job);
    if (job.rows == 0) return;
    with_type(job.dtype, "cross_entropy", [&]<typename T>(T*) {
      const std::int64_t threads = loss_threads(job.stride, job.dtype);
      const std::int64_t held =
          std::min(divided_up(job.vocab_size, kChunk<T>), grid_.most_memory_bytes() / kChunkBytes);
      const CrossEntropyRows<T> rows{
          .logits = out<T>(job.logits),
          .targets = job.targets,
          .losses = job.losses,
          .rows = job.rows,
          .stride = job.stride,
          .vocab_size = job.vocab_size,
          .gradient_scale = job.gradient_scale,
          .loss_scale = job.loss_scale,
          .gradient = job.gradient_scale == 0 ? Gradient::kNo : Gradient::kYes,
          .held = held};
      grid_.run_at_once(
          {.blocks_x = job.rows, .threads = threads, .memory_bytes = held * kChunkBytes},
          CrossEntropyBody<T>{rows}, stream);
    });
  }

  Grid& grid() { return grid_; }

 private:
  // Blocks of kElementThreads threads, a chunk each.
  template <typename T>
  static std::int64_t column_tiles(std::int64_t width) {
    return divided_up(divided_up(width, kChunk<T>), kElementThreads);
  }
  template <typename T>
  static const T* in(const void* data) {
    return static_cast<const T*>(data);
  }
  template <typename T>
  static T* out(void* data) {
    return static_cast<T*>(data);
  }

  template <typename Action>
  static void with_type(core::DType dtype, const char* kernel, const Action& action) {
    if (dtype == core::DType::kFloat32) return action(static_cast<float*>(nullptr));
    if (dtype == core::DType::kBFloat16) return action(static_cast<core::BFloat16*>(nullptr));
    if (dtype == core::DType::kFloat16) return action(static_cast<core::Float16*>(nullptr));
    require(false, kernel,
            "expected float32, bfloat16 or float16, found " + std::string(core::name_of(dtype)));
  }

  template <typename Action>
  static void with_access(Access access, const Action& action) {
    if (access == Access::kVector) return action(std::integral_constant<Access, Access::kVector>());
    action(std::integral_constant<Access, Access::kElement>());
  }

  template <NormPass kPass, typename Action>
  static void with_held_and_access(std::int64_t width, Access access, const Action& action) {
    with_access(access, [&](auto how) {
      with_norm_held<kPass>(width, [&](auto held) { action(held, how); });
    });
  }

  Grid grid_;
};

}  // namespace sidestream::model::device

#include "model/fused/embedding.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/StringUtil.h>

#include "core/base/error.hpp"
#include "model/fused/block_product.hpp"
#include "model/fused/recorded.hpp"
#include "model/kernels/embedding.hpp"
#include "model/tied_gradient.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kRowsPerTask = 64;

void check_ids(const Tensor& tokens, std::int64_t rows) {
  const auto* ids = data_of<std::int64_t>(tokens);
  const auto* bad = std::find_if(ids, ids + tokens.numel(),
                                 [&](std::int64_t id) { return id < 0 || id >= rows; });
  if (bad == ids + tokens.numel()) return;
  throw core::DataError(
      c10::str("token id ", *bad, " is outside the embedding of ", rows, " rows"));
}

template <typename T>
Tensor forward_of(const Tensor& tokens_bt, const Tensor& wte, const Tensor& wpe) {
  const std::int64_t width = wte.size(1), time = tokens_bt.size(1);
  Tensor out = at::empty({tokens_bt.size(0), time, width}, wte.options());
  const auto* ids = data_of<std::int64_t>(tokens_bt);
  at::parallel_for(0, tokens_bt.numel(), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* position = wpe.defined() ? data_of<T>(wpe) + i % time * width : nullptr;
      kernels::add_embeddings(data_of<T>(wte) + ids[i] * width, position, width,
                              data_of<T>(out) + i * width);
    }
  });
  return out;
}

// Positions in the batch by token id, each id's in order: order[begins[i] .. begins[i + 1]) belong
// to one id.
struct ById {
  std::vector<std::int64_t> order, begins;
};

ById group_by_id(const std::int64_t* ids, std::int64_t count) {
  ById groups{.order = std::vector<std::int64_t>(count), .begins = {}};
  std::iota(groups.order.begin(), groups.order.end(), 0);
  std::stable_sort(groups.order.begin(), groups.order.end(),
                   [&](std::int64_t a, std::int64_t b) { return ids[a] < ids[b]; });
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 || ids[groups.order[i]] != ids[groups.order[i - 1]]) groups.begins.push_back(i);
  }
  groups.begins.push_back(count);
  return groups;
}

template <typename T>
void add_token_gradient(const Tensor& dx, const Tensor& tokens_bt, const Tensor& target_vc) {
  const auto* ids = data_of<std::int64_t>(tokens_bt);
  const ById groups = group_by_id(ids, tokens_bt.numel());
  const std::int64_t width = dx.size(-1);
  at::parallel_for(0, std::ssize(groups.begins) - 1, kRowsPerTask,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<float> sums(width);
                     for (std::int64_t group = begin; group < end; ++group) {
                       const std::int64_t first = groups.begins[group];
                       kernels::accumulate_rows(
                           kernels::RowGradients<T>{.grads = data_of<T>(dx),
                                                    .rows = &groups.order[first],
                                                    .count = groups.begins[group + 1] - first,
                                                    .width = width},
                           sums.data(), data_of<T>(target_vc) + ids[groups.order[first]] * width);
                     }
                   });
}

template <typename T>
Tensor position_gradient(const Tensor& dx, std::int64_t positions) {
  const std::int64_t batch = dx.size(0), time = dx.size(1), width = dx.size(2);
  Tensor result = at::zeros({positions, width}, dx.options());
  at::parallel_for(0, time, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> sums(width);
    std::vector<std::int64_t> rows(batch);
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t b = 0; b < batch; ++b) rows[b] = b * time + t;
      kernels::accumulate_rows(
          kernels::RowGradients<T>{
              .grads = data_of<T>(dx), .rows = rows.data(), .count = batch, .width = width},
          sums.data(), data_of<T>(result) + t * width);
    }
  });
  return result;
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& tokens_bt, const Tensor& wte,
                        const std::optional<Tensor>& positions,
                        const c10::intrusive_ptr<TiedGradient>& tied) {
    RECORD_FUNCTION("sidestream::embed", Inputs({wte, tokens_bt}), node_number());
    const Tensor wpe = positions.value_or(Tensor());
    context->save_for_backward({tokens_bt});
    context->saved_data["rows"] = wte.size(0);
    context->saved_data["positions"] = wpe.defined() ? wpe.size(0) : 0;
    tied_gradient::keep(context, tied);
    Tensor out;
    with_element_type(wte.scalar_type(),
                      [&]<typename T>(T*) { out = forward_of<T>(tokens_bt, wte, wpe); });
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const Tensor tokens_bt = context->get_saved_variables()[0];
    const Tensor dx = grads[0].contiguous();
    RECORD_FUNCTION("sidestream::embed_backward", Inputs({dx, tokens_bt}));
    const std::int64_t positions = context->saved_data["positions"].toInt();
    tensor_list result(4);
    result[1] = tied_gradient::take(context, {context->saved_data["rows"].toInt(), dx.size(2)},
                                    dx.options());
    with_element_type(dx.scalar_type(), [&]<typename T>(T*) {
      add_token_gradient<T>(dx, tokens_bt, result[1]);
      if (positions > 0) result[2] = position_gradient<T>(dx, positions);
    });
    return result;
  }
};

}  // namespace

Tensor embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  const Tensor tokens = tokens_bt.contiguous();
  check_ids(tokens, embeddings.tokens_vc.size(0));
  tied_gradient::announce(embeddings);
  // As an optional: autograd looks at the device of every tensor that it is handed.
  std::optional<Tensor> positions;
  if (embeddings.positions_pc.defined()) positions = embeddings.positions_pc;
  return EmbedFunction::apply(tokens, embeddings.tokens_vc, positions, embeddings.tied);
}

}  // namespace sidestream::model::fused

// One product of cublasLt's (cuBLAS documentation, "Using the cuBLASLt API"): described, its
// algorithms asked for, launched. For files that are compiled with CUDA's headers.
#pragma once

#include <cublasLt.h>

#include <array>
#include <memory>
#include <type_traits>
#include <vector>

#include "model/device/lt_products.hpp"

namespace sidestream::model::device {

// All that decides which algorithms a product can have: equal keys, equal algorithms. Where its
// memory lies is no part of it: all of it begins at multiples of 16 bytes.
using LtKey = std::array<std::int64_t, 12>;
LtKey key_of(const LtProduct& product, int device);

template <typename Handle, cublasStatus_t (*destroy)(Handle)>
struct LtDestroyed {
  void operator()(Handle handle) const { destroy(handle); }
};
template <typename Handle, cublasStatus_t (*destroy)(Handle)>
using LtOwned = std::unique_ptr<std::remove_pointer_t<Handle>, LtDestroyed<Handle, destroy>>;
using LtDescription = LtOwned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = LtOwned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

LtDescription description_of(const LtProduct& product);
LtLayout layout_of(const LtMatrix& matrix);

struct LtWorkspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

// A product as a handle takes it. Throws core::Error where cublasLt refuses it.
class LtCall {
 public:
  LtCall(const LtProduct& product, cublasLtHandle_t handle);

  // At most so many, what the heuristic holds for the fastest first; one at least.
  std::vector<cublasLtMatmulAlgo_t> algorithms(int most, std::size_t workspace_bytes) const;

  // out: where the product's own lies, or memory that is as large.
  void launch(const cublasLtMatmulAlgo_t& algorithm, const LtWorkspace& workspace,
              cudaStream_t stream, void* out) const;

 private:
  LtProduct product_;
  cublasLtHandle_t handle_;
  LtDescription description_;
  LtLayout first_, second_, out_;
};

}  // namespace sidestream::model::device

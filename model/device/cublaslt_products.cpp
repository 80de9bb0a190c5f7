// EpilogueProducts by cublasLt (cuBLAS documentation, "Using the cuBLASLt API"). It counts columns
// first: a row-major [R, H] is its H x R matrix, and out = left right is asked for as out^T =
// right^T left^T.
#include <cublasLt.h>

#include <memory>
#include <string>
#include <type_traits>

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "core/base/error.hpp"
#include "model/device/epilogue_products.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw core::Error(std::string("cublasLt, a product with an epilogue: ") + doing + ": " +
                    cublasLtGetStatusString(status) + "; --fused-ops on has none");
}

template <typename Handle, cublasStatus_t (*destroy)(Handle)>
struct Destroyed {
  void operator()(Handle handle) const { destroy(handle); }
};
template <typename Handle, cublasStatus_t (*destroy)(Handle)>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyed<Handle, destroy>>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t type_of(const Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf ? CUDA_R_16F : CUDA_R_16BF;
}

// The row-major matrix as cublasLt sees it: its columns are the rows.
Layout layout_of(const Tensor& rows) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type_of(rows), static_cast<std::uint64_t>(rows.size(1)),
                                   static_cast<std::uint64_t>(rows.size(0)), rows.size(1)),
        "a layout");
  return Layout(layout);
}

// out^T = first second, each as cublasLt sees it, or transposed.
struct Product {
  const Tensor& first;
  cublasOperation_t of_first;
  const Tensor& second;
  cublasOperation_t of_second;
  const Tensor& out;
  cublasLtEpilogue_t epilogue;
  const Tensor& bias;              // added, or the gradient of it written
  const Tensor* before = nullptr;  // what goes into GELU: written, or read
};

template <typename Value>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
        "an attribute");
}

Description description_of(const Product& product) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a description");
  Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, product.of_first);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, product.of_second);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, product.epilogue);
  set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.data_ptr());
  if (product.before != nullptr) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.before->data_ptr());
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
        static_cast<std::int64_t>(product.before->size(1)));
  }
  return description;
}

template <typename Value>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "a preference");
}

// What EpilogueProducts::take() has seen to, and LibTorch's allocator. Always the same, so that the
// place of a tensor does not decide which algorithm it gets, and with that its last bits.
constexpr std::uint32_t kAlignment = 16;
// As much as cuBLAS itself takes on an H100 (its documentation, cublasSetWorkspace).
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

// Partial sums of a split product stay in fp32.
Preference make_preference() {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "preferences");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::size_t>(kWorkspaceBytes));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_NONE});
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, matrix, kAlignment);
  return preference;
}

void run(const Product& product) {
  const c10::cuda::CUDAGuard guard(product.out.device());
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  // Of LibTorch's allocator: given back at once, to what comes later on this stream.
  const Tensor workspace = at::empty({kWorkspaceBytes}, product.out.options().dtype(at::kByte));
  const Description description = description_of(product);
  const Preference preference = make_preference();
  const Layout first = layout_of(product.first), second = layout_of(product.second),
               out = layout_of(product.out);
  cublasLtMatmulHeuristicResult_t chosen = {};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle, description.get(), first.get(), second.get(),
                                       out.get(), out.get(), preference.get(), 1, &chosen, &found),
        "an algorithm");
  check(found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED, "an algorithm");
  const float one = 1, none = 0;
  check(
      cublasLtMatmul(handle, description.get(), &one, product.first.const_data_ptr(), first.get(),
                     product.second.const_data_ptr(), second.get(), &none,
                     product.out.const_data_ptr(), out.get(), product.out.mutable_data_ptr(),
                     out.get(), &chosen.algo, workspace.mutable_data_ptr(),
                     static_cast<std::size_t>(kWorkspaceBytes), c10::cuda::getCurrentCUDAStream()),
      "its launch");
}

class CublasLtProducts : public EpilogueProducts {
 public:
  void with_gelu(const Tensor& x_rc, const Tensor& weight_ch, const Tensor& bias_h,
                 const Tensor& before_rh, const Tensor& activation_rh) const override {
    run({.first = weight_ch,
         .of_first = CUBLAS_OP_N,
         .second = x_rc,
         .of_second = CUBLAS_OP_N,
         .out = activation_rh,
         .epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
         .bias = bias_h,
         .before = &before_rh});
  }

  void through_gelu(const Tensor& dy_rc, const Tensor& weight_hc, const Tensor& before_rh,
                    const Tensor& grad_rh, const Tensor& bias_grad_h) const override {
    run({.first = weight_hc,
         .of_first = CUBLAS_OP_T,
         .second = dy_rc,
         .of_second = CUBLAS_OP_N,
         .out = grad_rh,
         .epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD,
         .bias = bias_grad_h,
         .before = &before_rh});
  }

  void weight_gradient(const Tensor& x_rc, const Tensor& dy_rh, const Tensor& weight_grad_ch,
                       const Tensor& bias_grad_h) const override {
    run({.first = dy_rh,
         .of_first = CUBLAS_OP_N,
         .second = x_rc,
         .of_second = CUBLAS_OP_T,
         .out = weight_grad_ch,
         .epilogue = CUBLASLT_EPILOGUE_BGRADA,
         .bias = bias_grad_h});
  }
};

}  // namespace

std::shared_ptr<const EpilogueProducts> make_epilogue_products() {
  return std::make_shared<CublasLtProducts>();
}

}  // namespace sidestream::model::device

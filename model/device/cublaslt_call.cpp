#include "model/device/cublaslt_call.hpp"

#include <string>

#include "core/base/error.hpp"

namespace sidestream::model::device {
namespace {

using Preference = LtOwned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw core::Error(std::string("cublasLt, a product: ") + doing + ": " +
                    cublasLtGetStatusString(status) +
                    "; --tune-products off leaves products to LibTorch");
}

cudaDataType_t type_of(const LtMatrix& matrix) {
  switch (matrix.dtype) {
    case at::kFloat:
      return CUDA_R_32F;
    case at::kHalf:
      return CUDA_R_16F;
    case at::kBFloat16:
      return CUDA_R_16BF;
    default:
      throw core::Error(
          std::string("cublasLt, a product: expected float, half or bfloat16, found ") +
          c10::toString(matrix.dtype));
  }
}

cublasOperation_t operation_of(const LtOperand& operand) {
  return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

template <typename Value>
void set(const LtDescription& description, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
        "an attribute");
}

template <typename Value>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "a preference");
}

// What Products takes, and what LibTorch's allocator gives. Always the same, so that
// the place of a tensor does not decide which algorithm it gets, and with that its last bits.
constexpr std::uint32_t kAlignment = 16;

// Partial sums of a split product stay in fp32.
Preference make_preference(std::size_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "preferences");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_NONE});
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, matrix, kAlignment);
  return preference;
}

}  // namespace

LtLayout layout_of(const LtMatrix& matrix) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(
      cublasLtMatrixLayoutCreate(&layout, type_of(matrix), static_cast<std::uint64_t>(matrix.rows),
                                 static_cast<std::uint64_t>(matrix.columns), matrix.stride),
      "a layout");
  return LtLayout(layout);
}

LtDescription description_of(const LtProduct& product) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a description");
  LtDescription description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, operation_of(product.first));
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, operation_of(product.second));
  if (product.bias != nullptr) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  }
  return description;
}

LtKey key_of(const LtProduct& product, int device) {
  const LtMatrix &first = product.first.matrix, &second = product.second.matrix;
  return {device,
          static_cast<std::int64_t>(first.dtype),
          static_cast<std::int64_t>(product.out.dtype),
          product.first.transposed,
          product.second.transposed,
          product.bias != nullptr,
          first.rows,
          first.columns,
          product.out.columns,
          first.stride,
          second.stride,
          product.out.stride};
}

LtCall::LtCall(const LtProduct& product, cublasLtHandle_t handle)
    : product_(product),
      handle_(handle),
      description_(description_of(product)),
      first_(layout_of(product.first.matrix)),
      second_(layout_of(product.second.matrix)),
      out_(layout_of(product.out)) {}

std::vector<cublasLtMatmulAlgo_t> LtCall::algorithms(int most, std::size_t workspace_bytes) const {
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const Preference preference = make_preference(workspace_bytes);
  check(cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(),
                                       out_.get(), out_.get(), preference.get(), most,
                                       results.data(), &found),
        "an algorithm");
  results.resize(static_cast<std::size_t>(found));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  check(algorithms.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS, "an algorithm");
  return algorithms;
}

void LtCall::launch(const cublasLtMatmulAlgo_t& algorithm, const LtWorkspace& workspace,
                    cudaStream_t stream, void* out) const {
  const float one = 1, kept = product_.added ? 1 : 0;
  check(
      cublasLtMatmul(handle_, description_.get(), &one, product_.first.matrix.memory, first_.get(),
                     product_.second.matrix.memory, second_.get(), &kept, out, out_.get(), out,
                     out_.get(), &algorithm, workspace.memory, workspace.bytes, stream),
      "its launch");
}

}  // namespace sidestream::model::device

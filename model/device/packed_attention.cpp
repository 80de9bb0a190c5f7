#include "model/device/packed_attention.hpp"

namespace sidestream::model::device {

bool PackedAttention::takes(const torch::Tensor& qkv_bt3c, const AttentionOptions& options) {
  const at::ScalarType type = qkv_bt3c.scalar_type();
  const std::int64_t head_width = qkv_bt3c.size(2) / 3 / options.heads;
  return (type == at::kBFloat16 || type == at::kHalf) && options.dropout == 0 &&
         qkv_bt3c.size(0) > 0 && qkv_bt3c.size(1) > 1 && fits_packed_attention(head_width);
}

}  // namespace sidestream::model::device

#include "model/device/packed_attention.hpp"

namespace sidestream::model::device {

std::shared_ptr<const PackedAttention> make_packed_attention() { return nullptr; }

}  // namespace sidestream::model::device

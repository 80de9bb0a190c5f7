#include "model/device/epilogue_products.hpp"

namespace sidestream::model::device {

std::shared_ptr<const EpilogueProducts> make_epilogue_products() { return nullptr; }

}  // namespace sidestream::model::device

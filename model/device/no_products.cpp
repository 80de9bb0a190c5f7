#include "model/device/products.hpp"

namespace sidestream::model::device {

std::shared_ptr<const Products> make_products() { return nullptr; }

}  // namespace sidestream::model::device

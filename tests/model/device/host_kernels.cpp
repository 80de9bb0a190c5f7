#include "tests/model/device/host_block.hpp"

namespace sidestream::model::device {

template class KernelsOn<HostGrid>;

}  // namespace sidestream::model::device

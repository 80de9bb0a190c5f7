#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {

LaunchQueuePtr tested_queue() { return make_launch_queue(); }

}  // namespace sidestream::model::device

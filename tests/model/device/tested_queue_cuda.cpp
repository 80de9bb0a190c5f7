#include <stdexcept>

#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {

LaunchQueuePtr tested_queue() { return make_launch_queue(); }

LaunchQueuePtr tested_queue_with_products() {
  LaunchQueuePtr queue = make_launch_queue();
  queue->products = make_products();
  if (!queue->products) throw std::logic_error("this build has no products to test");
  return queue;
}

LaunchQueuePtr tested_queue_with_packed_attention() {
  LaunchQueuePtr queue = make_launch_queue();
  queue->attention = make_packed_attention();
  if (!queue->attention) throw std::logic_error("this build has no packed attention to test");
  return queue;
}

}  // namespace sidestream::model::device

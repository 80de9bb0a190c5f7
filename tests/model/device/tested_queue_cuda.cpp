#include <stdexcept>

#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {

LaunchQueuePtr tested_queue() { return make_launch_queue(); }

namespace {

LaunchQueuePtr with_products(const ChosenProducts& products) {
  LaunchQueuePtr queue = make_launch_queue();
  queue->products = products;
  if (!products.products) throw std::logic_error("this build has no products to test");
  return queue;
}

}  // namespace

LaunchQueuePtr tested_queue_with(Epilogues epilogues) {
  return with_products({.products = make_products(Algorithms::kFirst), .epilogues = epilogues});
}

LaunchQueuePtr tested_queue_with_all_products(Epilogues epilogues) {
  return with_products(
      {.products = make_products(Algorithms::kFastest), .epilogues = epilogues, .plain = true});
}

LaunchQueuePtr tested_queue_with_packed_attention() {
  LaunchQueuePtr queue = make_launch_queue();
  queue->attention = make_packed_attention();
  if (!queue->attention) throw std::logic_error("this build has no packed attention to test");
  return queue;
}

}  // namespace sidestream::model::device

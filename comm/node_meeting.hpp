// How the ranks of a node agree while they make something together: each gives a few words and gets
// those of all, in the order of their places on the node. Whoever makes a meeting decides about its
// deadline.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::comm {

struct NodeMeeting {
  int rank = 0;  // place on the node
  int size = 1;
  std::function<std::vector<std::string>(std::string_view mine)> exchange;
  // The same with the ranks of all nodes, where they meet at once; empty: this node meets alone.
  std::function<std::vector<std::string>(std::string_view mine)> exchange_with_all_nodes = {};
  bool huge_pages = true;  // are asked for, where a segment has one

  // For what decides how it goes on: nodes that meet at once all have to meet as often.
  std::vector<std::string> exchange_to_decide(std::string_view mine) const {
    return exchange_with_all_nodes ? exchange_with_all_nodes(mine) : exchange(mine);
  }
};

}  // namespace sidestream::comm

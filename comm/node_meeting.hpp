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
};

}  // namespace sidestream::comm

// Where a rank sits: in the job, on its node, among the nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sidestream::comm {

struct Topology {
  int rank = 0;  // in the job
  int size = 1;
  int local_rank = 0;  // on the node
  int local_size = 1;
  int node = 0;  // index of the node, in order of its lowest rank
  int node_count = 1;
  std::vector<std::string> hosts = {};  // host name of every rank, in rank order

  // As messages name a rank: "rank 3 on node7".
  std::string place_of(std::size_t of_rank) const {
    return "rank " + std::to_string(of_rank) + " on " + hosts.at(of_rank);
  }
};

}  // namespace sidestream::comm

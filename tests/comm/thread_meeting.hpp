// Ranks that are threads of this process meet without MPI.
#pragma once

#include <barrier>
#include <string>
#include <vector>

#include "comm/node_meeting.hpp"

namespace sidestream::test {

class Meeting {
 public:
  explicit Meeting(int size)
      : words_(static_cast<std::size_t>(size)), size_(size), barrier_(size) {}

  comm::NodeMeeting of(int rank) {
    return {.rank = rank, .size = size_, .exchange = [this, rank](std::string_view mine) {
              words_[static_cast<std::size_t>(rank)] = mine;
              barrier_.arrive_and_wait();
              std::vector<std::string> all = words_;
              barrier_.arrive_and_wait();  // nobody writes before all have read
              return all;
            }};
  }

 private:
  std::vector<std::string> words_;
  int size_;
  std::barrier<> barrier_;
};

}  // namespace sidestream::test

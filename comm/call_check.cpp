#include "comm/call_check.hpp"

#include <algorithm>
#include <map>

namespace sidestream::comm {
namespace {

std::string ranks_text(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

std::string call_stamp(const Call& call) {
  return call.arguments() + " as operation " + std::to_string(call.sequence);
}

std::string call_difference(const std::vector<std::string>& stamps) {
  std::map<std::string, std::vector<std::size_t>> ranks_by_call;
  for (std::size_t rank = 0; rank < stamps.size(); ++rank)
    ranks_by_call[stamps[rank]].push_back(rank);
  if (ranks_by_call.size() <= 1) return {};
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups(ranks_by_call.begin(),
                                                                       ranks_by_call.end());
  // The few against the many: the odd ones first.
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                              : a.second.front() > b.second.front();
  });
  std::string text;
  for (const auto& [call, ranks] : groups) {
    text += (text.empty() ? "" : ", ") + ranks_text(ranks) +
            (ranks.size() == 1 ? " calls " : " call ") + call;
  }
  return text + ": every rank must make the same calls in the same order; no data was moved";
}

}  // namespace sidestream::comm

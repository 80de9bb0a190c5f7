#include "launch/doctor/over_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace sidestream::launch::doctor {
namespace {

std::vector<std::size_t> all_ranks(const JobFacts& job) {
  std::vector<std::size_t> ranks(job.ranks.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  return ranks;
}

std::string text_of(const JobFacts& job, Subject subject, const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) {
    text +=
        (text.empty() ? "" : ", ") + (subject == Subject::kHost ? job.topology.hosts.at(ranks[i])
                                                                : job.topology.place_of(ranks[i]));
  }
  if (ranks.size() > kNamed) text += fmt::format(" and {} more", ranks.size() - kNamed);
  return text;
}

}  // namespace

std::vector<std::size_t> first_ranks(const JobFacts& job) {
  std::vector<std::size_t> ranks;
  std::set<int> seen;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (seen.insert(job.ranks[rank].host).second) ranks.push_back(rank);
  }
  return ranks;
}

int ranks_beside(const JobFacts& job, std::size_t rank) {
  return static_cast<int>(
      std::count_if(job.ranks.begin(), job.ranks.end(),
                    [&](const RankFacts& other) { return other.host == job.ranks[rank].host; }));
}

int most_ranks_of_a_host(const JobFacts& job) {
  int most = 1;
  for (const std::size_t rank : first_ranks(job)) most = std::max(most, ranks_beside(job, rank));
  return most;
}

Finding worst_over(const JobFacts& job, Subject subject,
                   const std::function<Finding(const RankFacts&)>& judge) {
  const auto subjects = subject == Subject::kHost ? first_ranks(job) : all_ranks(job);
  Finding worst;
  std::vector<std::size_t> as_bad;
  for (const std::size_t rank : subjects) {
    Finding finding = judge(job.ranks[rank]);
    if (as_bad.empty() || finding.level > worst.level) {
      worst = std::move(finding);
      as_bad.clear();
      as_bad.push_back(rank);
    } else if (finding.level == worst.level) {
      as_bad.push_back(rank);
    }
  }
  if (as_bad.size() < subjects.size()) worst.where = text_of(job, subject, as_bad);
  return worst;
}

}  // namespace sidestream::launch::doctor

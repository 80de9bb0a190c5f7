// A check of single ranks, made for all ranks of a job.
#pragma once

#include <functional>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

enum class Subject {
  kRank,  // what may differ from rank to rank
  kHost,  // what ranks of a host share: the first rank of each speaks for it
};

// The worst finding, with the ranks or hosts that are as bad in `where`, unless all are.
Finding worst_over(const JobFacts& job, Subject subject,
                   const std::function<Finding(const RankFacts&)>& judge);

// The first rank of each host, in order.
std::vector<std::size_t> first_ranks(const JobFacts& job);

// Number of ranks on the host of `rank`.
int ranks_beside(const JobFacts& job, std::size_t rank);

// Of the host with the most ranks.
int most_ranks_of_a_host(const JobFacts& job);

}  // namespace sidestream::launch::doctor

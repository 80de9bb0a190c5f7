// The checks of `sidestream doctor`: each judges one thing, from facts alone, and is silent where
// it has nothing to judge. One file a check; `all_checks` is their order on the page.
#pragma once

#include <optional>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

using Check = std::optional<Finding> (*)(const JobFacts&);

// What is installed
std::optional<Finding> check_program(const JobFacts& job);
std::optional<Finding> check_libtorch(const JobFacts& job);
std::optional<Finding> check_toolkit(const JobFacts& job);
std::optional<Finding> check_gpu(const JobFacts& job);
std::optional<Finding> check_gpu_memory(const JobFacts& job);
std::optional<Finding> check_gpu_clocks(const JobFacts& job);
std::optional<Finding> check_nccl(const JobFacts& job);
std::optional<Finding> check_mpi(const JobFacts& job);
std::optional<Finding> check_mpi_cuda(const JobFacts& job);
std::optional<Finding> check_launcher(const JobFacts& job);
// The machine
std::optional<Finding> check_processor(const JobFacts& job);
std::optional<Finding> check_clock_rate(const JobFacts& job);
std::optional<Finding> check_quota(const JobFacts& job);
std::optional<Finding> check_load(const JobFacts& job);
std::optional<Finding> check_binding(const JobFacts& job);
std::optional<Finding> check_memory(const JobFacts& job);
std::optional<Finding> check_shared_memory(const JobFacts& job);
std::optional<Finding> check_huge_pages(const JobFacts& job);
std::optional<Finding> check_open_files(const JobFacts& job);
std::optional<Finding> check_locked_memory(const JobFacts& job);
std::optional<Finding> check_tasks(const JobFacts& job);
std::optional<Finding> check_file_size(const JobFacts& job);
std::optional<Finding> check_address_space(const JobFacts& job);
std::optional<Finding> check_clock_source(const JobFacts& job);
std::optional<Finding> check_host_clocks(const JobFacts& job);
std::optional<Finding> check_ceilings(const JobFacts& job);
// The disk
std::optional<Finding> check_writing(const JobFacts& job);
std::optional<Finding> check_disk_space(const JobFacts& job);
std::optional<Finding> check_same_folder(const JobFacts& job);
// The ranks together
std::optional<Finding> check_ranks(const JobFacts& job);
std::optional<Finding> check_all_reduce(const JobFacts& job);
std::optional<Finding> check_gpu_ranks(const JobFacts& job);
std::optional<Finding> check_gpu_all_reduce(const JobFacts& job);

const std::vector<Check>& all_checks();

// Every finding, in the order of the table.
std::vector<Finding> judge(const JobFacts& job);

}  // namespace sidestream::launch::doctor

#include "launch/doctor/checks.hpp"

namespace sidestream::launch::doctor {

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks = {
      check_program,       check_libtorch,   check_toolkit,       check_gpu,
      check_gpu_memory,    check_gpu_clocks, check_nccl,          check_mpi,
      check_mpi_cuda,      check_launcher,   check_processor,     check_clock_rate,
      check_quota,         check_load,       check_binding,       check_memory,
      check_shared_memory, check_huge_pages, check_open_files,    check_locked_memory,
      check_tasks,         check_file_size,  check_address_space, check_clock_source,
      check_host_clocks,   check_ceilings,   check_writing,       check_disk_space,
      check_same_folder,   check_ranks,      check_all_reduce,    check_gpu_ranks,
      check_gpu_all_reduce};
  return checks;
}

std::vector<Finding> judge(const JobFacts& job) {
  std::vector<Finding> findings;
  for (const Check check : all_checks()) {
    if (auto finding = check(job)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace sidestream::launch::doctor

#include <fmt/format.h>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

// Windows in /dev/shm are asked to lie on huge pages, on which they are summed a quarter faster;
// other memory takes them by itself.
std::optional<Finding> check_huge_pages(const JobFacts& job) {
  return worst_over(job, Subject::kHost, [](const RankFacts& rank) -> Finding {
    const MemoryFacts& memory = rank.memory;
    if (memory.huge_pages.empty())
      return {.name = "huge-pages",
              .level = Level::kNote,
              .found = "the kernel does not say whether it has transparent huge pages",
              .expected = "'always' or 'madvise' in /sys/kernel/mm/transparent_hugepage/enabled",
              .remedy =
                  "nothing to do where the kernel was built without them; steps are a little "
                  "slower"};
    Finding finding{.name = "huge-pages",
                    .found = fmt::format("transparent huge pages: '{}', for /dev/shm '{}'",
                                         memory.huge_pages, memory.huge_pages_of_files)};
    if (memory.huge_pages != "never" && memory.huge_pages_of_files != "deny") return finding;
    finding.level = Level::kNote;
    finding.expected = "'madvise' or 'always', and not 'deny' for /dev/shm";
    finding.remedy =
        "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; echo "
        "advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
    return finding;
  });
}

}  // namespace sidestream::launch::doctor

#include "core/base/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <string>

namespace sidestream::core {
namespace {

constexpr int kMostProcessors = 1 << 20;

class CpuMask {
 public:
  explicit CpuMask(int processors) : processors_(processors), set_(CPU_ALLOC(processors)) {
    if (!set_) throw std::bad_alloc();
    CPU_ZERO_S(bytes(), set_.get());
  }

  void add(int one) { CPU_SET_S(one, bytes(), set_.get()); }
  std::vector<int> processors() const {
    std::vector<int> found;
    for (int one = 0; one < processors_; ++one) {
      if (CPU_ISSET_S(one, bytes(), set_.get())) found.push_back(one);
    }
    return found;
  }
  std::size_t bytes() const { return CPU_ALLOC_SIZE(processors_); }
  cpu_set_t* get() const { return set_.get(); }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  int processors_;
  std::unique_ptr<cpu_set_t, Free> set_;
};

}  // namespace

std::vector<int> allowed_processors() {
  // The kernel refuses a mask that is smaller than its own.
  for (int most = CPU_SETSIZE; most <= kMostProcessors; most *= 2) {
    CpuMask mask(most);
    if (sched_getaffinity(0, mask.bytes(), mask.get()) == 0) return mask.processors();
  }
  return {};
}

int allowed_cores() {
  std::set<std::string> cores;  // by the threads of each
  for (const int processor : allowed_processors()) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                       "/topology/thread_siblings_list");
    std::string threads;
    if (std::getline(file, threads)) cores.insert(threads);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

bool restrict_to(const std::vector<int>& processors) {
  if (processors.empty()) return false;
  CpuMask mask(std::max(CPU_SETSIZE, *std::ranges::max_element(processors) + 1));
  for (const int one : processors) mask.add(one);
  return sched_setaffinity(0, mask.bytes(), mask.get()) == 0;
}

}  // namespace sidestream::core

#include "profiling/trace/kind.hpp"

#include <array>
#include <utility>

namespace sidestream::trace {
namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 25> kCategories = {{
    {"cpu_op", Kind::kOperator},
    {"kernel", Kind::kKernel},
    {"cuda_runtime", Kind::kRuntime},
    {"cuda_driver", Kind::kRuntime},
    {"gpu_memcpy", Kind::kMemcpy},
    {"gpu_memset", Kind::kMemset},
    {"user_annotation", Kind::kHostRange},
    {"gpu_user_annotation", Kind::kDeviceRange},
    {"python_function", Kind::kPython},
    {"cuda_sync", Kind::kDeviceSync},
    {"cpu_instant_event", Kind::kMemory},
    {"lock", Kind::kLock},
    {"hip_runtime", Kind::kRuntime},
    {"hip_driver", Kind::kRuntime},
    {"runtime", Kind::kRuntime},
    {"driver", Kind::kRuntime},
    {"Operator", Kind::kOperator},
    {"Kernel", Kind::kKernel},
    {"Runtime", Kind::kRuntime},
    {"Memcpy", Kind::kMemcpy},
    {"Memset", Kind::kMemset},
    {"memcpy", Kind::kMemcpy},
    {"memset", Kind::kMemset},
    {"concurrent_kernel", Kind::kKernel},
    {"gpu_graph", Kind::kGraph},  // of our own merged files
}};

constexpr char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool starts_with_any_case(std::string_view name, std::string_view lower_prefix) {
  if (name.size() < lower_prefix.size()) return false;
  for (std::size_t i = 0; i < lower_prefix.size(); ++i) {
    if (lower(name[i]) != lower_prefix[i]) return false;
  }
  return true;
}

}  // namespace

Kind kind_of_category(std::string_view category) {
  for (const auto& [name, kind] : kCategories) {
    if (name == category) return kind;
  }
  return Kind::kOther;
}

bool is_collective_kernel(std::string_view name) {
  return starts_with_any_case(name, "nccl") || starts_with_any_case(name, "rccl");
}

}  // namespace sidestream::trace

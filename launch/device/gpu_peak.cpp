#include "launch/device/gpu_peak.hpp"

namespace sidestream::launch {
namespace {

struct Peak {
  // The first that fits counts: special cases come before their family.
  std::string_view model;
  double bf16_tflops;
  double tf32_tflops;
  double fp32_tflops;
};

constexpr Peak kPeaks[] = {
    {"H100 NVL", 835, 417.5, 60}, {"H200 NVL", 835, 417.5, 60}, {"H100 PCIe", 756, 378, 51},
    {"H200", 989, 494.5, 67},     {"H100", 989, 494.5, 67},     {"A100", 312, 156, 19.5},
    {"L40S", 362, 183, 91.6},     {"L4", 121, 60, 30.3},        {"4090", 165, 82.6, 82.6},
};

double tflops_of(const Peak& peak, Precision precision) {
  switch (precision) {
    case Precision::kBf16:
    case Precision::kFp16:
      return peak.bf16_tflops;
    case Precision::kTf32:
      return peak.tf32_tflops;
    case Precision::kFp32:
      return peak.fp32_tflops;
  }
  return peak.fp32_tflops;
}

}  // namespace

std::optional<double> gpu_peak_flops_per_s(std::string_view device_name, Precision precision) {
  for (const std::string_view other : {"MIG", "Laptop", "Max", "4090 D"}) {
    if (names_model(device_name, other)) return std::nullopt;  // less than what bears the name
  }
  for (const Peak& peak : kPeaks) {
    if (names_model(device_name, peak.model)) return tflops_of(peak, precision) * 1e12;
  }
  return std::nullopt;
}

bool names_model(std::string_view device_name, std::string_view model) {
  const auto is_end = [&](std::size_t at) {
    return at >= device_name.size() || device_name[at] == ' ' || device_name[at] == '-';
  };
  for (std::size_t at = device_name.find(model); at != std::string_view::npos;
       at = device_name.find(model, at + 1)) {
    if ((at == 0 || is_end(at - 1)) && is_end(at + model.size())) return true;
  }
  return false;
}

}  // namespace sidestream::launch

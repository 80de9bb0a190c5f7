// Entries of top_ops and a machine to hold them against.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

inline nlohmann::ordered_json operation(const std::string& name, double total_ms,
                                        std::int64_t calls,
                                        const nlohmann::ordered_json& flops_per_s,
                                        const nlohmann::ordered_json& bytes_per_s) {
  return {{"name", name},
          {"calls", calls},
          {"total_ns", total_ms * 1e6},
          {"share", 0.5},
          {"flops_per_s", flops_per_s},
          {"bytes_per_s", bytes_per_s}};
}

inline nlohmann::ordered_json shaped(const std::string& operator_name, const std::string& shapes,
                                     const std::string& type, double flops = 1) {
  return {{"operator", operator_name},
          {"shapes", shapes},
          {"types", "[\"" + type + "\", \"" + type + "\"]"},
          {"flops", flops}};
}

// With inputs of fp32, so that there is a roof.
inline nlohmann::ordered_json in_fp32(nlohmann::ordered_json one) {
  one["shapes"] = {shaped("aten::mm", "[[64, 64], [64, 64]]", "float")};
  return one;
}

// 1 TFLOP/s and 100 GB/s: the ridge lies at 10 FLOP a byte.
inline Facts machine() {
  Facts facts{.on_device = true};
  facts.ceilings =
      Ceilings{.flops_per_s = {{"fp32", 1e12}}, .memory_bytes_per_s = 1e11, .source = "test"};
  return facts;
}

}  // namespace sidestream::advice

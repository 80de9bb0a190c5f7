// Datasheet peaks of GPUs: dense products, no sparsity, what MFU is measured against.
//
// NVIDIA's datasheets: H100 and H200 SXM 989 TFLOP/s bf16, 494 tf32, 67 fp32 (H100 PCIe 756, 378,
// 51; H100 and H200 NVL 835, 417, 60); A100 312, 156, 19.5; L40S 362, 183, 91.6; L4 121, 60, 30.3;
// RTX 4090 165 (fp32 accumulation), 82.6, 82.6.
#pragma once

#include <optional>
#include <string_view>

#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// FLOP/s of one GPU; nothing for a device that is not in the list: better no figure than a guess.
std::optional<double> gpu_peak_flops_per_s(std::string_view device_name, Precision precision);

// Whether the words of `model` stand in the name one after the other: "L4" is in "NVIDIA L4" and in
// "NVIDIA L4-24Q", not in "NVIDIA L40S".
bool names_model(std::string_view device_name, std::string_view model);

}  // namespace sidestream::launch

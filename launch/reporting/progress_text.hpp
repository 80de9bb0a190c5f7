// How a step looks: as a line of a log, and as a progress bar. Pure functions of the numbers.
#pragma once

#include <cstdint>
#include <string>

#include "launch/reporting/step_metrics.hpp"

namespace sidestream::launch {

// "epoch 0, step 10/200, loss 5.1234, lr 6.00e-04, batch_cost 0.512 s, reader_cost 0.001 s,
// ips 31.2 samples/s 8000 tokens/s, MFU 45.1 %, memory 512 MB, ETA 0:01:20"; what was not measured
// is "-".
std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps);

struct BarStyle {
  int width_columns = 80;
  bool color = false;
  bool utf8 = false;
};

// One line that fits the width, colour sequences not counted: parts are left out from the least
// important one.
std::string progress_bar(const StepMetrics& metrics, std::int64_t total_steps,
                         const BarStyle& style);

// "0:01:20", "3:04:05", "2d 03:04:05".
std::string duration_text(double seconds);

// "12", "1234", "12.3k", "4.56M".
std::string short_number(double value);

}  // namespace sidestream::launch

// Amounts as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace sidestream::launch::doctor {

std::string bytes_text(std::int64_t bytes);  // "512 KiB", "1.9 GiB", "unlimited"
std::string rate_text(double bytes_per_s);   // "9.8 GB/s", "118 MB/s"
std::string seconds_text(double seconds);    // "2.1 s", "3.4 ms", "12 us"

}  // namespace sidestream::launch::doctor

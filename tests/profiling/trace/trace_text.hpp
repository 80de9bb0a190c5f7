// Hand-made Kineto traces for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace sidestream::test {

inline std::filesystem::path write_text(const std::filesystem::path& path,
                                        const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// Times in microseconds, as they stand in a file.
inline std::string complete_event(const std::string& category, const std::string& name,
                                  const std::string& time, const std::string& duration,
                                  const std::string& arguments = "") {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":1,"tid":1,"ts":)" +
         time + R"(,"dur":)" + duration + R"(,"args":{)" + arguments + "}}";
}

// A sample of the system: `values` is "\"busy\":40".
inline std::string counter_event(const std::string& name, const std::string& time,
                                 const std::string& values) {
  return R"({"ph":"C","cat":"system","name":")" + name + R"(","pid":1,"tid":0,"ts":)" + time +
         R"(,"args":{)" + values + "}}";
}

// An allocation of the host as PyTorch's profiler writes it; `total` is what is held after it.
inline std::string memory_event(int at_us, int bytes, int total) {
  return R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":)" +
         std::to_string(at_us) + R"(,"args":{"Total Allocated":)" + std::to_string(total) +
         R"(,"Addr":7,"Bytes":)" + std::to_string(bytes) + R"(,"Device Id":-1,"Device Type":0}})";
}

inline std::string trace_of(const std::string& events, int rank = 0, int world_size = 1) {
  return R"({"distributedInfo":{"rank":)" + std::to_string(rank) + R"(,"world_size":)" +
         std::to_string(world_size) + R"(},"traceEvents":[)" + events + "]}";
}

}  // namespace sidestream::test

// Reports of Nsight Systems (.nsys-rep) among the files: exported through nsys where there is one.
#pragma once

#include <filesystem>
#include <vector>

#include "profiling/trace/trace_files.hpp"

namespace sidestream::launch {

// Exports live in a temporary folder as long as this object.
class NsysExports {
 public:
  // Throws core::DataError when a report needs nsys and
  // there is none: the message has the command to run.
  explicit NsysExports(std::vector<trace::TraceFile> files);
  NsysExports(const NsysExports&) = delete;
  NsysExports& operator=(const NsysExports&) = delete;
  ~NsysExports();

  const std::vector<trace::TraceFile>& files() const noexcept { return files_; }

 private:
  void replace(trace::TraceFile& file);

  std::vector<trace::TraceFile> files_;
  std::filesystem::path folder_;
  int exported_ = 0;
};

}  // namespace sidestream::launch

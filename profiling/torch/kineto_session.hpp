// PyTorch's profiler (Kineto) around some steps, from C++: what `torch.profiler` does in Python.
//
//   session.prepare();                         // a few steps earlier: what is set up lazily
//   session.start();
//   session.begin_step(12); ...; session.end_step();
//   const KinetoTrace trace = session.stop("raw.json");
//
// All on the thread of the steps. Threads of autograd's backward are seen too: autograd carries the
// profiler along. CUPTI has one client a process: with nsys or ncu around it there is no GPU half.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

namespace sidestream::kineto {

struct KinetoConfig {
  bool gpu = false;
  bool shapes = false;
  bool memory = false;
  bool stacks = false;
  bool flops = false;
};

// What the profiler knows about an operator and does not write into its file, by the number that
// the file calls "External id".
struct OperatorNotes {
  std::uint64_t flops = 0;
  std::string stack = {};  // frames from the innermost, separated by ';'
};
using KinetoNotes = std::unordered_map<std::uint64_t, OperatorNotes>;

class KinetoSession {
 public:
  explicit KinetoSession(const KinetoConfig& config);
  ~KinetoSession();  // a recording that was not stopped is dropped
  KinetoSession(const KinetoSession&) = delete;
  KinetoSession& operator=(const KinetoSession&) = delete;

  void prepare();
  void start();
  void begin_step(std::int64_t step);
  void end_step();

  // Writes Kineto's own file. Throws c10::Error.
  KinetoNotes stop(const std::filesystem::path& raw_file);

 private:
  struct State;
  KinetoConfig config_;
  std::unique_ptr<State> state_;
};

}  // namespace sidestream::kineto

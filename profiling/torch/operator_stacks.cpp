#include "profiling/torch/operator_stacks.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include <torch/csrc/profiler/combined_traceback.h>

namespace sidestream::kineto {
namespace {

namespace profiler = torch::autograd::profiler;

constexpr std::size_t kMostFrames = 24;

struct TakenStack {
  std::string name;
  std::shared_ptr<torch::CapturedTraceback> stack;
};

// Of the recording itself, and what every thread begins with.
bool is_noise(const std::string& function) {
  return function.starts_with("at::RecordFunction") ||
         function.starts_with("torch::CapturedTrace") ||
         function.find("OperatorStacks") != std::string::npos ||
         function.starts_with("torch::unwind") || function.starts_with("__libc_start") ||
         function == "_start" || function.starts_with("at::StepCallbacks");
}

// "model/gpt2.cpp:41 forward", without the folders of the machine that built it.
std::string frame_text(const torch::unwind::Frame& frame) {
  const std::size_t slash = frame.filename.rfind('/');
  const std::string file =
      slash == std::string::npos ? frame.filename : frame.filename.substr(slash + 1);
  std::string function = frame.funcname.substr(0, frame.funcname.find('('));
  std::replace(function.begin(), function.end(), ';', ',');
  return frame.lineno > 0 ? file + "(" + std::to_string(frame.lineno) + "): " + function
                          : file + ": " + function;
}

// Events by the number of their thread, in the order of their starts: what a callback sees.
std::map<std::uint64_t, std::vector<const profiler::KinetoEvent*>> events_by_thread(
    const profiler::ProfilerResult& result) {
  std::map<std::uint64_t, std::vector<const profiler::KinetoEvent*>> threads;
  for (const profiler::KinetoEvent& event : result.events()) {
    if (event.deviceType() == c10::DeviceType::CPU && event.correlationId() != 0 &&
        !event.isAsync())
      threads[event.startThreadId()].push_back(&event);
  }
  for (auto& [thread, events] : threads) {
    std::stable_sort(events.begin(), events.end(),
                     [](const auto* a, const auto* b) { return a->startNs() < b->startNs(); });
  }
  return threads;
}

}  // namespace

struct OperatorStacks::Log {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<TakenStack>> threads;
};

namespace {

// Callbacks of LibTorch are plain functions: the log of the recording that runs.
std::mutex current_mutex;
std::weak_ptr<void> current;

}  // namespace

OperatorStacks::OperatorStacks() : log_(std::make_shared<Log>()) {
  {
    const std::lock_guard lock(current_mutex);
    current = log_;
  }
  const auto on_start =
      [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    std::shared_ptr<Log> log;
    {
      const std::lock_guard lock(current_mutex);
      log = std::static_pointer_cast<Log>(current.lock());
    }
    if (log == nullptr) return nullptr;
    TakenStack taken{function.name(), torch::CapturedTraceback::gather(false, false, true)};
    const std::lock_guard lock(log->mutex);
    log->threads[at::RecordFunction::currentThreadId()].push_back(std::move(taken));
    return nullptr;
  };
  callback_ = at::addGlobalCallback(at::RecordFunctionCallback(on_start));
}

OperatorStacks::~OperatorStacks() { stop(); }

void OperatorStacks::stop() {
  if (std::exchange(stopped_, true)) return;
  at::removeCallback(callback_);
}

void OperatorStacks::add_to(KinetoNotes& notes, const profiler::ProfilerResult& result) {
  std::vector<torch::CapturedTraceback*> stacks;
  std::vector<std::uint64_t> owners;
  for (const auto& [thread, events] : events_by_thread(result)) {
    const std::vector<TakenStack>& taken = log_->threads[thread];
    std::size_t at = 0;
    for (const profiler::KinetoEvent* event : events) {
      std::size_t found = at;
      while (found < taken.size() && taken[found].name != event->name()) ++found;
      if (found == taken.size()) continue;
      at = found + 1;
      stacks.push_back(taken[found].stack.get());
      owners.push_back(event->correlationId());
    }
  }
  const torch::SymbolizedTracebacks symbols = torch::symbolize(stacks);
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    std::string text;
    std::size_t frames = 0;
    for (const std::uint64_t frame : symbols.tracebacks[i]) {
      const auto& one = symbols.all_frames[frame];
      if (is_noise(one.funcname) || frames == kMostFrames) continue;
      text += (frames++ == 0 ? "" : ";") + frame_text(one);
    }
    notes[owners[i]].stack = std::move(text);
  }
}

}  // namespace sidestream::kineto

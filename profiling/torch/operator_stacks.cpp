#include "profiling/torch/operator_stacks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <unordered_map>

#include <c10/util/Type.h>
#include <torch/csrc/profiler/unwind/unwind.h>

namespace sidestream::kineto {
namespace {

namespace profiler = torch::autograd::profiler;

constexpr std::size_t kMostFrames = 24;

struct TakenStack {
  std::string name;
  std::vector<void*> frames;  // innermost first
};

// Of the recording itself, and what every thread begins with.
bool is_noise(const std::string& function) {
  constexpr std::array<std::string_view, 7> kStarts = {"at::RecordFunction",
                                                       "at::StepCallbacks",
                                                       "c10::Dispatcher::runRecordFunction",
                                                       "torch::unwind",
                                                       "__libc_start",
                                                       "_start",
                                                       "??"};
  return function.find("OperatorStacks") != std::string::npos ||
         std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return function.starts_with(start); });
}

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "gpt2.cpp(41): sidestream::model::Gpt2::forward", without the folders of the machine that built
// it and without arguments.
std::string frame_text(const torch::unwind::Frame& frame) {
  std::string function = c10::demangle(frame.funcname.c_str());
  erase_all(function, "(anonymous namespace)::");
  erase_all(function, "[clone .isra.0]");
  function = function.substr(0, function.find('('));
  std::replace(function.begin(), function.end(), ';', ',');
  std::replace(function.begin(), function.end(), '/', '|');
  const std::string file = last_part(frame.filename);
  // Where there is no debug information the number is an offset into a library.
  const bool library = file.find(".so") != std::string::npos;
  std::string line;
  if (frame.lineno > 0 && !library) {
    line += '(';
    line += std::to_string(frame.lineno);
    line += ')';
  }
  return file.empty() || file == "??" ? function : file + line + ": " + function;
}

// Names by address. Those of libraries come from their tables of symbols, at once; those of the
// program itself from its debug information where it has some, else from its table too.
class Symbols {
 public:
  explicit Symbols(const std::set<void*>& addresses) {
    std::error_code none;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();
    std::vector<void*> ours, others;
    for (void* const address : addresses) {
      const auto library = torch::unwind::libraryFor(address);
      (library && library->first == program ? ours : others).push_back(address);
    }
    add(ours, torch::unwind::Mode::addr2line);
    add(others, torch::unwind::Mode::dladdr);
  }
  const std::string& operator[](void* address) const { return texts_.at(address); }

 private:
  void add(const std::vector<void*>& addresses, torch::unwind::Mode mode) {
    if (addresses.empty()) return;
    const auto frames = torch::unwind::symbolize(addresses, mode);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::string name = c10::demangle(frames[i].funcname.c_str());
      texts_[addresses[i]] = is_noise(name) ? "" : frame_text(frames[i]);
    }
  }

  std::unordered_map<void*, std::string> texts_;  // empty: not worth showing
};

std::string stack_text(const std::vector<void*>& stack, const Symbols& symbols) {
  std::string text;
  std::size_t frames = 0;
  for (void* const address : stack) {
    const std::string& frame = symbols[address];
    if (frame.empty() || frames == kMostFrames) continue;
    text += (frames++ == 0 ? "" : ";") + frame;
  }
  return text;
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
    TakenStack taken{function.name(), torch::unwind::unwind()};
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
  std::vector<std::pair<std::uint64_t, const std::vector<void*>*>> found;
  std::set<void*> addresses;
  for (const auto& [thread, events] : events_by_thread(result)) {
    const std::vector<TakenStack>& taken = log_->threads[thread];
    std::size_t at = 0;
    for (const profiler::KinetoEvent* event : events) {
      std::size_t match = at;
      while (match < taken.size() && taken[match].name != event->name()) ++match;
      if (match == taken.size()) continue;
      at = match + 1;
      found.emplace_back(event->correlationId(), &taken[match].frames);
      addresses.insert(taken[match].frames.begin(), taken[match].frames.end());
    }
  }
  const Symbols symbols(addresses);
  for (const auto& [owner, stack] : found) notes[owner].stack = stack_text(*stack, symbols);
}

}  // namespace sidestream::kineto

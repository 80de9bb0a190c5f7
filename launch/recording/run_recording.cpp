#include "launch/recording/run_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/warning.hpp"
#include "launch/recording/raw_file.hpp"
#include "launch/recording/recording_file.hpp"
#include "launch/recording/recording_losses.hpp"

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;

// A request is answered at the end of the step, so that no step is cut in two, unless there is none
// for so long: then something hangs.
constexpr milliseconds kLongestStep{2000};
constexpr milliseconds kBetweenLooks{100};

// How long somebody who asks waits for the file, and a rank that has failed: what it has to tell
// is worth more.
constexpr milliseconds kLongestWrite{20'000};
constexpr milliseconds kLongestLastWrite{8'000};

const char* tool_that_listens() {
  const char* const injected = std::getenv("NVTX_INJECTION64_PATH");
  return injected != nullptr && *injected != '\0' ? injected : nullptr;
}

// ncu and nsys set these for the process that they start.
bool cupti_is_taken() {
  for (const char* name :
       {"CUDA_INJECTION64_PATH", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NVTX_INJECTION64_PATH"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  errno = error.value();
  core::fail_to_write("cannot make the folder", folder);
}

}  // namespace

void check_recording(const RecordOptions& options) {
  if (options.profile && cupti_is_taken()) {
    throw core::ConfigError(
        "--profile: nsys or ncu is attached to this process, and a process has room for one "
        "profiler (CUPTI has one client): leave out --profile, or start without the tool");
  }
  if (options.whole_run() && tool_that_listens() != nullptr) {
    throw core::ConfigError(
        "--record on: nsys or another NVTX tool is attached to this process and takes the "
        "recorder's place: leave out --record, or start without the tool");
  }
  if (options.any() && !record::process_recorder_is_attached()) {
    throw core::ConfigError(
        "--record and --profile: this program was built without NVTX, so that no ranges are told; "
        "install the NVTX headers (nvidia-nvtx) and build again");
  }
}

RunRecording::RunRecording(const RecordOptions& options, RecordingParts parts)
    : options_(options),
      parts_(std::move(parts)),
      origin_(TraceOrigin::of(parts_.communicator)),
      plan_(options.profile, parts_.first_step),
      recorder_(record::process_recorder()) {
  recorder_.make_room_for(static_cast<std::size_t>(options_.ranges_per_thread));
  if (options_.any()) begin_recording();
  if (options_.any() || parts_.on_request) begin_watching();
}

void RunRecording::begin_recording() {
  if (options_.sample_hz > 0) sampler_.emplace(options_.sample_hz, parts_.gpu_pci_bus);
  if (options_.whole_run()) {
    sample_clocks(parts_.communicator, clocks_);
    recorder_.keep(record::Keeping::kOn);
    hook_ = parts_.failure_hook.add([this] { dump_now("a collective has failed"); });
  }
}

void RunRecording::begin_watching() {
  watcher_.emplace(parts_.dump_request, "ss-recorder", [this] { answer_request(); });
}

RunRecording::~RunRecording() {
  parts_.failure_hook.remove(hook_);
  watcher_.reset();
  recorder_.keep(record::Keeping::kOff);
}

void RunRecording::before(std::int64_t step) {
  if (options_.every_second_step() && !in_window_)
    recorder_.keep(step % 2 == 0 ? record::Keeping::kOn : record::Keeping::kPaused);
  if (plan_.begins(step, ProfilePlan::Part::kWarmUp) || plan_.begins_window(step)) {
    if (!kineto_) {
      kineto_.emplace(kineto::KinetoConfig{.gpu = !parts_.gpu_pci_bus.empty(),
                                           .shapes = options_.shapes,
                                           .memory = options_.memory,
                                           .stacks = options_.stacks,
                                           .flops = options_.flops});
      kineto_->prepare();
    }
  }
  if (plan_.begins_window(step)) begin_window();
  if (in_window_) kineto_->begin_step(step);
}

void RunRecording::begin_window() {
  if (options_.whole_run()) {
    sample_clocks(parts_.communicator, clocks_);
    const std::filesystem::path folder = write_since_last(Profiler::kOff);
    write_clock_file(folder);
  }
  sample_clocks(parts_.communicator, clocks_);
  recorder_.keep(record::Keeping::kOn);
  // What was before belongs to no window.
  const record::Recording before = recorder_.take();
  samples_until(before.end.monotonic_ns);
  kineto_->start();
  in_window_ = true;
}

void RunRecording::after(std::int64_t step, std::int64_t step_ns, std::int64_t data_wait_ns) {
  if (in_window_) kineto_->end_step();
  cost_.add(step_ns, data_wait_ns,
            in_window_                                          ? SeenStep::kYes
            : plan_.part_of(step) == ProfilePlan::Part::kWarmUp ? SeenStep::kWarmUp
                                                                : SeenStep::kNot);
  if (options_.every_second_step() && !in_window_)
    record_cost_.add(step_ns, data_wait_ns, recorder_.keeps() ? SeenStep::kYes : SeenStep::kNot);
  if (in_window_ && plan_.ends_window(step)) end_window(step);
  if (const int request = open_request_.exchange(0)) answer_after_step(request);
}

void RunRecording::answer_after_step(int request) {
  if (in_window_)
    return parts_.say("asked for what was recorded: it will be in the timeline of this window");
  const std::string folder = dump_asked(request);
  if (!folder.empty()) parts_.say("asked to, and wrote what was recorded so far: " + folder);
}

void RunRecording::went_back(std::int64_t step) {
  if (!in_window_) return;
  in_window_ = false;
  kineto_.reset();
  if (options_.whole_run()) {  // which has every range, also of steps that are taken back
    sample_clocks(parts_.communicator, clocks_);  // of its end; below, of the next one's start
    write_clock_file(write_since_last(Profiler::kOn));
    sample_clocks(parts_.communicator, clocks_);
  } else {
    recorder_.take();
    recorder_.keep(record::Keeping::kOff);
  }
  parts_.say(
      fmt::format("back to step {}: the window of the profiler that was open is dropped", step));
}

void RunRecording::end_window(std::int64_t step) {
  in_window_ = false;
  const record::Recording recording = recorder_.take();
  if (!options_.whole_run()) recorder_.keep(record::Keeping::kOff);
  const TracePlace place = trace_place(parts_.run_dir, origin_, step);
  const RawFile raw(place.folder / fmt::format(".raw_{:05}.json", origin_.rank));
  const std::string name = fmt::format("the timeline of the steps up to {}", step);
  kineto::KinetoNotes notes;
  const bool has_raw = attempt(name, [&] {
    make_folder(place.folder);
    notes = kineto_->stop(raw.path());
    raw.require();
  });
  kineto_.reset();
  sample_clocks(parts_.communicator, clocks_);
  const record::SystemSamples samples = samples_until(recording.end.monotonic_ns);
  note_lost(recording, samples);
  WrittenWindow written;
  const auto write = [&] {
    const std::lock_guard lock(files_);
    written = write_window({.raw_file = raw.path(),
                            .notes = notes,
                            .recording = recording,
                            .names = recorder_.names(),
                            .samples = samples,
                            .modules = options_.modules,
                            .figures = figures(Profiler::kOn)},
                           origin_, place.file);
  };
  const bool is_written = has_raw && attempt(name, write);
  raw.remove();
  write_clock_file(is_written ? place.folder : std::filesystem::path());
  if (options_.whole_run()) sample_clocks(parts_.communicator, clocks_);
  ++windows_;
  if (is_written) tell_of_window(step, place, written);
}

void RunRecording::tell_of_window(std::int64_t step, const TracePlace& place,
                                  const WrittenWindow& written) const {
  parts_.say(fmt::format("wrote the timeline of the steps up to {}: {}", step,
                         place.folder.lexically_relative(parts_.run_dir).string()));
  if (options_.wants_modules() && !written.any_layer && windows_ == 1)
    parts_.say(fmt::format(
        "--profile-modules={}: no layer has such a name{}", options_.modules,
        written.other_layer.empty() ? "" : "; they are called like " + written.other_layer));
}

bool RunRecording::attempt(const std::string& name, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const core::Error& error) {
    core::print_warning(fmt::format("{} is not written: {}", name, error.what()));
    return false;
  }
}

trace::RunFigures RunRecording::figures(Profiler profiler) const {
  trace::RunFigures figures = parts_.figures;
  if (const auto plain = cost_.plain_steps()) {
    figures.unprofiled_step_ms = plain->median;
    figures.unprofiled_step_deviation_ms = plain->deviation;
    figures.unprofiled_steps = static_cast<double>(plain->count);
    figures.unprofiled_data_wait_ms = cost_.plain_data_wait_ms();
  }
  figures.profiled = profiler == Profiler::kOn;
  return figures;
}

void RunRecording::write_clock_file(const std::filesystem::path& folder) {
  const std::string text = gather_clock_text(parts_.communicator, std::exchange(clocks_, {}));
  if (text.empty() || folder.empty()) return;
  attempt("how the clocks of the ranks stand",
          [&] { core::write_file_atomically(folder / "clock.json", text); });
}

std::filesystem::path RunRecording::write_since_last(Profiler profiler) {
  const std::lock_guard lock(files_);
  const std::int64_t step = recorder_.step();
  const TracePlace place = trace_place(parts_.run_dir, origin_, step);
  const auto file = take_file(profiler);
  const bool is_written =
      attempt(fmt::format("what was recorded up to step {}", step), [&] { file(place); });
  return is_written ? place.folder : std::filesystem::path();
}

std::function<void(const TracePlace&)> RunRecording::take_file(Profiler profiler) {
  record::Recording recording = recorder_.take();
  record::SystemSamples samples = samples_until(recording.end.monotonic_ns);
  note_lost(recording, samples);
  return [recording = std::move(recording), samples = std::move(samples), origin = origin_,
          figures = figures(profiler), &names = recorder_.names()](const TracePlace& place) {
    make_folder(place.folder);
    write_recording(recording, names, samples, origin, figures, place.file);
  };
}

void RunRecording::finish() {
  if (in_window_) end_window(recorder_.step());  // the run ended inside a window
  finished_ = true;
  if (options_.profile && windows_ == 0)
    parts_.say(fmt::format(
        "--profile: nothing was profiled: the first step of a window would have been {}, and the "
        "run ended with step {}",
        plan_.first_active_step().value_or(0), recorder_.step()));
  if (options_.whole_run()) {
    sample_clocks(parts_.communicator, clocks_);
    const std::filesystem::path folder = write_since_last(Profiler::kOff);
    write_clock_file(folder);
    if (!folder.empty())
      parts_.say(fmt::format("wrote what was recorded: {}",
                             folder.lexically_relative(parts_.run_dir).string()));
  }
  say_what_was_lost();
  if (const auto cost = cost_.share()) {
    parts_.say(
        cost->is_sure()
            ? fmt::format(
                  "the profiler made its {} steps {:.0f} % longer than the {} beside them, "
                  "before and after; a report knows those alone that came before the last trace",
                  cost->seen, cost->share * 100, cost->beside)
            : "what the profiler cost its steps is less than they scatter");
  }
  if (const auto cost = record_cost_.share()) {
    parts_.say(cost->is_sure()
                   ? fmt::format("recording made its steps {:.2f} % longer than those between them",
                                 cost->share * 100)
                   : fmt::format("what recording cost its steps is less than they scatter ({:.2f} "
                                 "%)",
                                 cost->uncertainty * 100));
  }
}

void RunRecording::note_lost(const record::Recording& recording,
                             const record::SystemSamples& samples) {
  dropped_ += recording.dropped;
  room_needed_ = std::max(room_needed_.load(), recording.room_needed);
  dropped_samples_ += samples.dropped;
}

// Of this rank: the others do the same.
void RunRecording::say_what_was_lost() const {
  const RecordingLosses losses{
      .ranges = dropped_, .room_needed = room_needed_, .samples = dropped_samples_};
  for (const std::string& warning : warnings_of(losses, options_, origin_.rank))
    parts_.say(warning);
}

record::SystemSamples RunRecording::samples_until(std::int64_t monotonic_ns) {
  return sampler_ ? sampler_->take(monotonic_ns) : record::SystemSamples();
}

void RunRecording::dump_now(const std::string& why) noexcept {
  dump(why, std::nullopt, kLongestLastWrite);
}

// Ranks are asked at the same time, and may be in different steps: their window is the request.
std::string RunRecording::dump_asked(int request) noexcept {
  return dump("asked to", request, kLongestWrite);
}

// Looking for a place, too, is for the thread that may be left behind.
std::string RunRecording::dump(const std::string& why, std::optional<int> request,
                               milliseconds limit) noexcept {
  if (finished_ || !(options_.whole_run() || recorder_.keeps())) return {};
  try {
    const std::unique_lock lock(files_, limit);
    if (!lock.owns_lock() || !dump_.done()) return {};  // the one before has not ended
    const auto folder = std::make_shared<std::filesystem::path>();
    dump_.start([file = take_file(Profiler::kOff), folder, run_dir = parts_.run_dir,
                 origin = origin_, step = recorder_.step(), request] {
      const TracePlace place = request ? trace_place(run_dir, origin, step, *request)
                                       : trace_place(run_dir, origin, step);
      file(place);
      *folder = place.folder;
    });
    if (dump_.finish_within(limit)) return folder->lexically_relative(parts_.run_dir).string();
    throw core::Error(fmt::format("{}: not finished after {} ms, its file system hangs",
                                  parts_.run_dir.string(), limit.count()));
  } catch (const std::exception& error) {
    core::print_warning(
        fmt::format("{}, and what was recorded is not written: {}", why, error.what()));
    return {};
  }
}

// A request has its number here, whatever becomes of it: one rank may meet it in a window of the
// profiler and another one after it, and what is asked for next has the same number on both.
void RunRecording::answer_request() {
  const int request = ++requests_;
  if (parts_.on_request) parts_.on_request();
  open_request_ = request;
  for (milliseconds waited{0}; waited < kLongestStep; waited += kBetweenLooks) {
    if (open_request_ == 0) return;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (in_window_) return;  // the end of the step says where it will be
  if (open_request_.exchange(0) != 0) dump_asked(request);
}

}  // namespace sidestream::launch

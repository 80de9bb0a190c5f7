// What a run records about itself, from its first step to its last: the light recorder, windows of
// the profiler, samples of the system, and the files of all of them.
//
//   RunRecording recording(options.record, {...});
//   recording.before(step); ...; recording.after(step, step_ns, wait_ns);
//   recording.finish();
//
// A file holds what came since the file before: all files of a rank together are its run, and no
// time is in two of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/failure_hook.hpp"
#include "launch/options/record_options.hpp"
#include "launch/process/dump_request.hpp"
#include "launch/process/dump_watch.hpp"
#include "launch/recording/clock_file.hpp"
#include "launch/recording/profile_cost.hpp"
#include "launch/recording/profile_plan.hpp"
#include "launch/recording/trace_origin.hpp"
#include "launch/recording/window_file.hpp"
#include "launch/watch/background_task.hpp"
#include "profiling/record/background_sampler.hpp"
#include "profiling/record/process_recorder.hpp"
#include "profiling/torch/kineto_session.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::launch {

// What a recording works with; all outlive it.
struct RecordingParts {
  comm::Communicator& communicator;
  comm::FailureHook& failure_hook;
  std::function<void()> on_request = {};  // SIGUSR2: beside what is recorded; may be empty
  const DumpRequest& dump_request;
  std::filesystem::path run_dir;
  std::int64_t first_step = 1;
  std::string gpu_pci_bus = {};                      // of the GPU that computes; empty: none does
  trace::RunFigures figures = {};                    // of the model and the machine
  std::function<void(const std::string& line)> say;  // to whoever watches the run
};

// Throws ConfigError when a tool that is attached excludes what is asked for: nsys and ncu take the
// place of the recorder, and CUPTI has one client a process.
void check_recording(const RecordOptions& options);

class RunRecording {
 public:
  RunRecording(const RecordOptions& options, RecordingParts parts);
  ~RunRecording();
  RunRecording(const RunRecording&) = delete;
  RunRecording& operator=(const RunRecording&) = delete;

  // Around every step, on one thread. Collective where a window begins or ends. A file that cannot
  // be written is a warning, and the run goes on without it.
  void before(std::int64_t step);
  void after(std::int64_t step, std::int64_t step_ns, std::int64_t data_wait_ns);
  // After the last step; collective.
  void finish();
  // Training goes on from this step, before those of a window that is open: what that has seen is
  // dropped, for it would be neither those steps nor those that follow. Collective: a recording of
  // the whole run is written.
  void went_back(std::int64_t step);

  // Writes what is in the recorder now; any thread, also while a collective hangs. Comes back
  // within seconds, whatever the file system does. Never throws, and says what went wrong.
  void dump_now(const std::string& why) noexcept;

 private:
  void begin_recording();
  void begin_watching();
  void begin_window();
  void end_window(std::int64_t step);
  enum class Profiler { kOff, kOn };
  trace::RunFigures figures(Profiler profiler) const;
  void tell_of_window(std::int64_t step, const TracePlace& place,
                      const WrittenWindow& written) const;
  // Whether it was written; a warning otherwise. `write` must not communicate: other ranks may have
  // room.
  static bool attempt(const std::string& name, const std::function<void()>& write);
  // Collective, also for a rank without a folder to write to (an empty path).
  void write_clock_file(const std::filesystem::path& folder);
  // Profiler: whether the steps since then had it. The folder; empty: it was not written.
  std::filesystem::path write_since_last(Profiler profiler);
  // Takes what is in the recorder; the file of it owns what it needs, for whoever writes it.
  std::function<void(const TracePlace& place)> take_file(Profiler profiler);
  // Where it was written, seen from the run directory; empty: it was not. `request`: the number of
  // the request, where it is one.
  std::string dump(const std::string& why, std::optional<int> request,
                   std::chrono::milliseconds limit) noexcept;
  std::string dump_asked(int request) noexcept;
  void note_lost(const record::Recording& recording, const record::SystemSamples& samples);
  record::SystemSamples samples_until(std::int64_t monotonic_ns);
  void say_what_was_lost() const;
  void answer_request();
  void answer_after_step(int request);

  const RecordOptions options_;
  const RecordingParts parts_;
  const TraceOrigin origin_;
  ProfilePlan plan_;
  record::Recorder& recorder_;
  std::optional<record::BackgroundSampler> sampler_;
  std::optional<kineto::KinetoSession> kineto_;
  ClockNotes clocks_;  // since the last clock.json
  ProfileCost cost_;
  ProfileCost record_cost_;  // of the light recorder, where it keeps every second step
  std::atomic<bool> in_window_{false};
  int windows_ = 0;                            // that have ended
  std::atomic<std::uint64_t> dropped_{0};      // ranges that found no room
  std::atomic<std::uint64_t> room_needed_{0};  // in which they would have; 0: not for want of it
  std::atomic<std::uint64_t> dropped_samples_{0};
  comm::FailureHook::Id hook_ = 0;
  std::timed_mutex files_;            // one file at a time
  BackgroundTask dump_;               // the last one; may be left behind
  std::atomic<int> open_request_{0};  // its number, until the end of the step; 0: none
  int requests_ = 0;                  // of the thread that answers them
  std::atomic<bool> finished_{false};
  std::optional<DumpWatch> watcher_;  // last: started when the rest exists
};

}  // namespace sidestream::launch

#include "profiling/torch/kineto_session.hpp"

#include <fcntl.h>

#include <set>
#include <string>

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "core/base/file.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/torch/operator_stacks.hpp"

namespace sidestream::kineto {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

std::set<ActivityType> activities_of(const KinetoConfig& config) {
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (config.gpu) activities.insert(ActivityType::CUDA);
  return activities;
}

// Stacks and modules are not asked for here: from C++ the profiler has none.
ProfilerConfig profiler_config(const KinetoConfig& config) {
  torch::profiler::impl::ExperimentalConfig experimental;
  experimental.enable_cuda_sync_events = config.gpu;
  return ProfilerConfig(ProfilerState::KINETO, config.shapes, config.memory, /*with_stack=*/false,
                        config.flops, /*with_modules=*/false, experimental);
}

}  // namespace

struct KinetoSession::State {
  bool running = false;
  std::optional<at::RecordFunction> step;
  std::optional<OperatorStacks> stacks;
};

KinetoSession::KinetoSession(const KinetoConfig& config)
    : config_(config), state_(std::make_unique<State>()) {}

KinetoSession::~KinetoSession() {
  if (!state_->running) return;
  state_->step.reset();
  try {
    profiler::disableProfiler();
  } catch (const std::exception&) {  // on the way out of a failure, which is what counts
  }
}

void KinetoSession::prepare() {
  profiler::prepareProfiler(profiler_config(config_), activities_of(config_));
}

void KinetoSession::start() {
  profiler::enableProfiler(profiler_config(config_), activities_of(config_));
  if (config_.stacks) state_->stacks.emplace();
  state_->running = true;
}

void KinetoSession::begin_step(std::int64_t step) {
  state_->step.emplace(at::RecordScope::USER_SCOPE);
  state_->step->before(ranges::step_name(step));
}

void KinetoSession::end_step() { state_->step.reset(); }

namespace {

// Kineto writes the path into its JSON as it is, quotes and all, and takes its backslashes for
// other slashes: it gets one without the names of folders.
void save(profiler::ProfilerResult& result, const std::filesystem::path& raw_file) {
  const std::filesystem::path folder = raw_file.has_parent_path() ? raw_file.parent_path() : ".";
  const core::UniqueFd opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  result.save(opened ? "/proc/self/fd/" + std::to_string(opened.get()) + "/" +
                           raw_file.filename().string()
                     : raw_file.string());
}

}  // namespace

KinetoNotes KinetoSession::stop(const std::filesystem::path& raw_file) {
  state_->running = false;
  const auto result = profiler::disableProfiler();
  if (state_->stacks) state_->stacks->stop();
  save(*result, raw_file);
  KinetoNotes notes;
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.flops() > 0) notes[event.correlationId()].flops = event.flops();
  }
  if (state_->stacks) state_->stacks->add_to(notes, *result);
  state_->stacks.reset();
  return notes;
}

}  // namespace sidestream::kineto

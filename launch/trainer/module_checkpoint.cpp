#include "launch/trainer/module_checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/shallow_json.hpp"
#include "core/base/warning.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/model_fields.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/agreed_checkpoint.hpp"
#include "launch/trainer/checkpointed_module.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/lock_wait.hpp"
#include "launch/trainer/model_folder.hpp"
#include "parallel/module_buffers.hpp"

namespace sidestream::launch {
namespace {

constexpr std::string_view kDeadline = "ModuleCheckpointOptions::deadline";

// What a manifest has room for beside its own fields.
constexpr std::size_t kMostProgramBytes = std::size_t{8} << 20;

void require_small(const nlohmann::json& program) {
  constexpr const char* kWhat = "what the program keeps in a checkpoint";
  std::string text;
  try {
    text = program.dump();
    core::parse_shallow_json("[[" + text + "]]");  // as deep as it will stand
  } catch (const nlohmann::json::exception& error) {
    throw core::ConfigError(fmt::format("{}: {}", kWhat, core::json_words(error)));
  } catch (const core::NestingError& error) {
    throw core::ConfigError(
        fmt::format("{}: expected at most 30 nested levels, found more", kWhat));
  }
  if (text.size() > kMostProgramBytes)
    throw core::ConfigError(fmt::format("{}: expected at most {} bytes of JSON, found {}", kWhat,
                                        kMostProgramBytes, text.size()));
}

std::vector<std::string> only_in(const std::set<std::string>& names,
                                 const std::set<std::string>& others) {
  std::vector<std::string> found;
  std::ranges::set_difference(names, others, std::back_inserter(found));
  return found;
}

}  // namespace

class ModuleCheckpoint::Impl {
 public:
  Impl(const std::filesystem::path& folder, comm::Communicator& communicator,
       const torch::nn::Module& module, parallel::DataParallel& replicas,
       const ModuleCheckpointOptions& options)
      : options_(options),
        communicator_(communicator),
        module_(module),
        replicas_(replicas),
        store_(checkpoint::RunPaths(folder).checkpoints()) {
    require_same_folder(folder);
    agree_in_time([&] {
      if (options.keep < 0)
        throw core::ConfigError(fmt::format(
            "ModuleCheckpointOptions::keep: expected 0 (all) or more, found {}", options.keep));
      model_ = std::make_shared<CheckpointedModule>(module, replicas);
      if (!is_first_rank()) return;
      wait_for_start_before(folder);
      directory_ = std::make_unique<checkpoint::RunDirectory>(
          folder, checkpoint::UsedRun::kContinue, "folder",
          [&](const auto&) { store_.remove_leftovers(core::print_warning); });
    });
  }

  std::optional<nlohmann::json> restore() {
    replicas_.require_idle("ModuleCheckpoint::restore()");
    begin(0);
    const auto found = agreed_checkpoint(communicator_, in_time(), [&] { return newest(); });
    if (!found) return std::nullopt;
    agree_in_time([&] { require_fits(*found); });
    std::vector<std::string> notes;
    TrainingState state = checkpointer().restore(*found, notes);
    agree_in_time([&] {
      if (!is_first_rank()) return;
      for (const std::string& note : notes) core::print_warning(note);
      for (const auto& folder : store_.set_aside_after(state.step))
        core::print_warning(set_aside_text(folder, state.step));
    });
    is_settled_ = true;
    return std::move(state.program);
  }

  void save(const nlohmann::json& program) {
    replicas_.require_idle("ModuleCheckpoint::save()");
    const std::int64_t step = replicas_.steps_taken();
    begin(step);
    agree_in_time([&] {
      require_small(program);
      require_settled();
      require_going_on(step);
    });
    is_settled_ = true;
    parallel::broadcast_buffers(module_, communicator_);
    TrainingState state{.step = step};
    state.bucket_order = replicas_.observed_bucket_order();
    if (replicas_.loss_scale().defined()) state.loss_scale = replicas_.loss_scale_state();
    state.program = program;
    checkpointer().save(state);
  }

 private:
  bool is_first_rank() const { return communicator_.rank() == 0; }

  // Peers that wait see what this rank does; what it may take is known here, until the next beat.
  void begin(std::int64_t step) const {
    options_.heartbeat->beat(ranges::Phase::kCheckpoint, step);
    options_.heartbeat->rest();
  }

  comm::CollectiveOptions in_time() const {
    return {.deadline = options_.deadline,
            .deadline_flag = kDeadline,
            .purpose = "checkpoint outcomes"};
  }
  void agree_in_time(const std::function<void()>& work) const {
    agree(communicator_, work, in_time());
  }

  Checkpointer checkpointer() const {
    return {{.folder = store_.folder(),
             .hold_folder = [this] { hold(); },
             .keep = options_.keep,
             .model = model_,
             .deadline = options_.deadline,
             .deadline_flag = kDeadline},
            communicator_,
            replicas_};
  }

  void hold() const {
    if (!directory_) return;
    if (const std::optional<std::string> news = directory_->hold()) core::print_warning(*news);
  }

  std::optional<checkpoint::Checkpoint> newest() const {
    checkpoint::NewestCheckpoint found = store_.newest_valid();
    require_one_whole(found, "restore", store_.folder(),
                      "Remove them to start over, or name another folder");
    for (const auto& skipped : found.skipped) core::print_warning(skipped_text(skipped));
    return std::move(found.checkpoint);
  }

  // Ranks that write elsewhere than rank 0 would say so at the first save only.
  void require_same_folder(const std::filesystem::path& folder) const {
    const auto all = communicator_.exchange(folder.string(), {.purpose = "folder of checkpoints"});
    const auto other = std::ranges::find_if(all, [&](const auto& text) { return text != all[0]; });
    if (other == all.end()) return;
    throw core::AgreedError(
        fmt::format("ranks name different folders for one checkpoint: rank 0 '{}', rank {} '{}'",
                    all[0], other - all.begin(), *other),
        core::ExitCode::kConfig);
  }

  // Less long than the others wait for this rank.
  void wait_for_start_before(const std::filesystem::path& folder) const {
    if (!is_restart()) return;
    wait_for_lock(checkpoint::RunPaths(folder), options_.deadline * 3 / 4,
                  [](const std::string& line) { core::print_note("folder: " + line); });
  }

  // A start that forgot to restore would save beside what is there, and the next one would go on
  // from the other's.
  void require_settled() const {
    if (is_settled_ || !is_first_rank() || store_.steps().empty()) return;
    throw core::ConfigError(fmt::format(
        "{} has checkpoints, and this start has not restored one: call restore() before "
        "the first step, or name another folder",
        store_.folder().string()));
  }

  void require_going_on(std::int64_t step) const {
    const std::int64_t bad = replicas_.first_bad_step();
    if (bad == 0) return;
    throw core::NumericsError(fmt::format(
        "step {}: not saved: the norm of step {} was not finite, and no update since then "
        "has changed anything. Go on from an older checkpoint",
        step, bad));
  }

  void require_fits(const checkpoint::Checkpoint& found) const {
    checkpoint::require_same_model(found.manifest.model, model_->identity(), found.folder);
    const TrainingState state = training_state_from(found.manifest.training);
    const std::string_view wanted = parallel::name_of(replicas_.config().optimizer.algorithm);
    if (!state.algorithm.empty() && state.algorithm != wanted)
      throw core::CheckpointError(fmt::format(
          "{}: expected the state of the optimizer {}, found that of {}. Go on with that one, or "
          "name another folder",
          found.folder.string(), wanted, state.algorithm));
    if (state.step > 0) require_same_moments(found);
    if (state.loss_scale && state.loss_scale->left_out > 0 && !replicas_.loss_scale().defined())
      throw core::CheckpointError(fmt::format(
          "{}: of its {} steps a loss scale has left out {} updates: expected a loss scale, found "
          "none in DataParallelConfig::loss_scale",
          found.folder.string(), state.step, state.loss_scale->left_out));
  }

  // With momentum and without, an optimizer has one name.
  void require_same_moments(const checkpoint::Checkpoint& found) const {
    std::set<std::string> wanted;
    for (const NamedTensor& moment : moments_of(replicas_.states(), *model_))
      wanted.insert(moment.name);
    const std::vector<std::string> names = checkpoint::TensorSet::open_optimizer(found).names();
    const std::set<std::string> stored(names.begin(), names.end());
    if (stored == wanted) return;
    const auto missing = only_in(wanted, stored), unknown = only_in(stored, wanted);
    throw core::CheckpointError(fmt::format(
        "{}: expected the moments of the optimizer as it is configured, found others ({}): "
        "configure it as it was, or name another folder",
        found.folder.string(),
        missing.empty() ? unknown.front() + " is not wanted" : missing.front() + " is missing"));
  }

  const ModuleCheckpointOptions options_;
  comm::Communicator& communicator_;
  const torch::nn::Module& module_;
  parallel::DataParallel& replicas_;
  checkpoint::CheckpointStore store_;
  std::shared_ptr<const CheckpointedModel> model_;
  std::unique_ptr<checkpoint::RunDirectory> directory_;  // of rank 0
  bool is_settled_ = false;  // what the folder has is this run's: it was restored, or saved
};

ModuleCheckpoint::ModuleCheckpoint(const std::filesystem::path& folder,
                                   comm::Communicator& communicator,
                                   const torch::nn::Module& module,
                                   parallel::DataParallel& replicas,
                                   const ModuleCheckpointOptions& options)
    : impl_(std::make_unique<Impl>(folder, communicator, module, replicas, options)) {}
ModuleCheckpoint::~ModuleCheckpoint() = default;

std::optional<nlohmann::json> ModuleCheckpoint::restore() { return impl_->restore(); }
void ModuleCheckpoint::save(const nlohmann::json& program) { impl_->save(program); }

}  // namespace sidestream::launch

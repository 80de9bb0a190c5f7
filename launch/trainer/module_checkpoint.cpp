#include "launch/trainer/module_checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/warning.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/agreed_checkpoint.hpp"
#include "launch/trainer/checkpointed_model.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/model_folder.hpp"
#include "parallel/parameter_list.hpp"

namespace sidestream::launch {
namespace {

constexpr std::string_view kDeadline = "ModuleCheckpointOptions::deadline";

std::string shape_text(const torch::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

// Names, shapes and types are all that is known of a module.
class CheckpointedModule final : public CheckpointedModel {
 public:
  CheckpointedModule(const torch::nn::Module& module, const parallel::DataParallel& replicas) {
    for (const auto& state : replicas.states())
      identity_["parameters"][state.name] = shape_text(state.parameter);
    identity_["constants"] = nlohmann::json::object();
    for (const auto& [name, tensor] : parallel::constant_tensors(module)) {
      // The format's own type for truth values is none that a checkpoint has.
      constants_.push_back(
          {name, tensor.scalar_type() == torch::kBool ? tensor.view(torch::kUInt8) : tensor});
      stored_type_of(constants_.back());
      identity_["constants"][name] =
          fmt::format("{} {}", c10::toString(tensor.scalar_type()), shape_text(tensor));
    }
  }

  nlohmann::json identity() const override { return identity_; }
  std::int64_t stored_rows(const std::string&, std::int64_t rows) const override { return rows; }
  std::vector<NamedTensor> constants() const override { return constants_; }

 private:
  nlohmann::json identity_;
  std::vector<NamedTensor> constants_;
};

}  // namespace

class ModuleCheckpoint::Impl {
 public:
  Impl(const std::filesystem::path& folder, comm::Communicator& communicator,
       const torch::nn::Module& module, parallel::DataParallel& replicas,
       const ModuleCheckpointOptions& options)
      : options_(options),
        communicator_(communicator),
        replicas_(replicas),
        store_(checkpoint::RunPaths(folder).checkpoints()) {
    agree_in_time([&] {
      model_ = std::make_shared<CheckpointedModule>(module, replicas);
      if (communicator_.rank() != 0) return;
      directory_ =
          std::make_unique<checkpoint::RunDirectory>(folder, checkpoint::UsedRun::kContinue);
      store_.remove_leftovers(core::print_warning);
    });
  }

  std::optional<nlohmann::json> restore() {
    const auto found = agreed_checkpoint(communicator_, in_time(), [&] { return newest(); });
    if (!found) return std::nullopt;
    agree_in_time([&] { require_same_optimizer(*found); });
    std::vector<std::string> notes;
    TrainingState state = checkpointer().restore(*found, notes);
    replicas_.check_replicas();
    agree_in_time([&] {
      if (communicator_.rank() != 0) return;
      for (const std::string& note : notes) core::print_warning(note);
      for (const auto& folder : store_.set_aside_after(state.step))
        core::print_warning(fmt::format(
            "set aside as {}: a checkpoint newer than step {}, from where training goes on",
            folder.string(), state.step));
    });
    return std::move(state.program);
  }

  void save(const nlohmann::json& program) {
    TrainingState state{.step = replicas_.steps_taken(), .bucket_order = replicas_.bucket_order()};
    if (replicas_.loss_scale().defined()) state.loss_scale = replicas_.loss_scale_state();
    state.program = program;
    checkpointer().save(state);
  }

 private:
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
    if (!found.checkpoint && !found.skipped.empty())
      throw core::CheckpointError(fmt::format(
          "{}: none of {} checkpoints can be used; the newest: {}. Remove them to start over, or "
          "name another folder",
          store_.folder().string(), found.skipped.size(), found.skipped.front().reason));
    for (const auto& skipped : found.skipped) core::print_warning(skipped_text(skipped));
    return std::move(found.checkpoint);
  }

  void require_same_optimizer(const checkpoint::Checkpoint& found) const {
    const std::string saved = algorithm_of(found.manifest.training);
    const std::string_view wanted = parallel::name_of(replicas_.config().optimizer.algorithm);
    if (saved.empty() || saved == wanted) return;
    throw core::CheckpointError(
        fmt::format("{}: expected the state of the optimizer {}, found that "
                    "of {}. Go on with that one, or name another folder",
                    found.folder.string(), wanted, saved));
  }

  const ModuleCheckpointOptions options_;
  comm::Communicator& communicator_;
  parallel::DataParallel& replicas_;
  checkpoint::CheckpointStore store_;
  std::shared_ptr<const CheckpointedModel> model_;
  std::unique_ptr<checkpoint::RunDirectory> directory_;  // of rank 0
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

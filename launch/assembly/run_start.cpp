#include "launch/assembly/run_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/warning.hpp"
#include "core/checkpoint/find_checkpoint.hpp"
#include "core/checkpoint/run_leftovers.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "launch/assembly/shared_folder.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/agreed_checkpoint.hpp"
#include "launch/trainer/lock_wait.hpp"
#include "launch/trainer/model_folder.hpp"
#include "launch/trainer/run_record.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::launch {
namespace {

bool is_checkpoint_of(const checkpoint::RunPaths& paths, const checkpoint::Checkpoint& checkpoint) {
  std::error_code ignored;  // a path that is not there is no folder of checkpoints
  return std::filesystem::equivalent(checkpoint.folder.parent_path(), paths.checkpoints(), ignored);
}

// A used run directory goes on with its own checkpoints only: metrics and checkpoints of two runs
// must not mix.
checkpoint::UsedRun used_run_policy(const TrainOptions& options,
                                    const std::optional<checkpoint::Checkpoint>& resume_from) {
  const checkpoint::RunPaths paths(options.run_dir);
  if (options.checkpoint.resume == "none") return checkpoint::UsedRun::kRefuse;
  if (!resume_from || is_checkpoint_of(paths, *resume_from)) return checkpoint::UsedRun::kContinue;
  // Of a supervised run that failed before its first save, nothing but metrics is there.
  const bool starts_over =
      is_restart() && checkpoint::CheckpointStore(paths.checkpoints()).steps().empty();
  if (starts_over) return checkpoint::UsedRun::kContinue;
  if (checkpoint::RunDirectory::is_used(paths)) {
    throw core::ConfigError(fmt::format(
        "--resume: {} is no checkpoint of --run-dir {}, which holds a run of its own. Give a new "
        "--run-dir to go on from "
        "that checkpoint, or say --resume auto to go on with the run in {}.",
        resume_from->folder.string(), options.run_dir.string(), options.run_dir.string()));
  }
  return checkpoint::UsedRun::kRefuse;
}

std::optional<checkpoint::Checkpoint> look_for_checkpoint(const TrainOptions& options,
                                                          std::vector<std::string>& notes) {
  if (options.checkpoint.resume == "none") return std::nullopt;
  checkpoint::NewestCheckpoint found;
  if (options.checkpoint.resume == "auto") {
    const checkpoint::RunPaths paths(options.run_dir);
    found = checkpoint::CheckpointStore(paths.checkpoints()).newest_valid();
    require_one_whole(found, "--resume auto", options.run_dir,
                      "Give a new --run-dir to start over, or remove the checkpoints to start over "
                      "in this one");
    if (!found.checkpoint && checkpoint::RunDirectory::is_used(paths))
      notes.push_back(
          fmt::format("warning: --resume auto: {} has been trained in, but has no checkpoint: from "
                      "the first step, and metrics of before go",
                      options.run_dir.string()));
  } else {
    auto named = checkpoint::find_checkpoint(options.checkpoint.resume);
    found = {.checkpoint = std::move(named.checkpoint), .skipped = std::move(named.skipped)};
  }
  for (const auto& skipped : found.skipped) notes.push_back(skipped_text(skipped));
  return found.checkpoint;
}

using Settings = std::map<std::string, std::string>;  // values by name

// The assignments of a configuration but those that a start may have of its own.
Settings settings_in(const std::string& text) {
  constexpr std::string_view kEquals = " = ";
  std::istringstream lines(text);
  Settings settings;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(kEquals);
    if (equals == std::string::npos || line.starts_with('#')) continue;
    const std::string name = line.substr(0, equals);
    if (name != "resume" && name != "run-dir")
      settings[name] = line.substr(equals + kEquals.size());
  }
  return settings;
}

// Nothing of a file that cannot be read.
Settings settings_of(const std::filesystem::path& config) {
  try {
    return settings_in(core::read_file(config));
  } catch (const core::Error&) {
    return {};
  }
}

// Of the run that made a checkpoint, which need not be that of --run-dir.
checkpoint::RunPaths run_of(const checkpoint::Checkpoint& checkpoint) {
  return checkpoint::RunPaths(checkpoint.folder.parent_path().parent_path());
}

// A resumed run may be told other values; nobody should wonder about its losses later.
void note_changes(const std::filesystem::path& config, const std::string& text,
                  std::vector<std::string>& notes) {
  if (!core::is_there(config)) return;
  const Settings before = settings_of(config), now = settings_in(text);
  std::vector<std::string> changed;
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != value) changed.push_back(name + " = " + value);
  }
  if (changed.size() == now.size()) {
    notes.push_back(fmt::format(
        "warning: {}: expected the settings of the run so far, found none of them: it is damaged, "
        "what is other than in that run is not known",
        config.string()));
    return;
  }
  for (const auto& [name, value] : before) {
    if (!now.contains(name))
      changed.push_back(fmt::format("{} is not set any more, it was {}", name, value));
  }
  for (const std::string& line : changed) notes.push_back("other than in the run so far: " + line);
}

bool has_reached(const RunRecord& record, std::optional<double> target, std::int64_t step) {
  return target && record.time_to_target_s && record.last_step == step &&
         record.last_val_loss.value_or(*target + 1) <= *target;
}

// A record that cannot be read says nothing of an end.
bool is_done(const std::filesystem::path& run_json, const TrainOptions& options,
             std::int64_t step) {
  try {
    const RunRecord record = read_run_record(run_json);
    return record.exit_code == 0 &&
           (step >= options.steps || has_reached(record, options.evaluation.target_val_loss, step));
  } catch (const core::Error&) {
    return false;
  }
}

std::vector<std::int64_t> steps_to_go_on_from(const TrainOptions& options) {
  if (options.checkpoint.resume != "auto") return {};
  return checkpoint::CheckpointStore(checkpoint::RunPaths(options.run_dir).checkpoints()).steps();
}

// The run that had the lock until now may have saved its end after the look for a checkpoint:
// going on from that one would throw the newer away.
void require_as_it_was(const TrainOptions& options, const std::vector<std::int64_t>& saved) {
  if (steps_to_go_on_from(options) == saved) return;
  throw core::ConfigError(fmt::format(
      "--resume auto: {} was in use until just now, and its checkpoints are others than "
      "when this run looked for the newest: start it again",
      options.run_dir.string()));
}

std::string of_rank_0(Session& session, const std::string& text, const char* purpose) {
  return session.communicator().exchange(text, {.purpose = purpose}).front();
}

// What --init means, as rank 0 sees it.
WeightsFolder weights_to_start_from(Session& session, const TrainOptions& options,
                                    std::vector<std::string>& notes) {
  WeightsFolder weights;
  agree_on_setup(session, options, [&] {
    if (session.is_first_rank()) weights = folder_of_weights(options.model.init, notes);
  });
  weights.folder = of_rank_0(session, weights.folder.string(), "weights to start from");
  return weights;
}

// While a checkpoint is read and its hashes are computed.
comm::CollectiveOptions reading_options(const TrainOptions& options) {
  const bool longer = options.timeouts.checkpoint > options.timeouts.setup;
  return {.deadline = longer ? options.timeouts.checkpoint : options.timeouts.setup,
          .deadline_flag = longer ? "--timeout-checkpoint" : "--timeout-setup",
          .purpose = "the checkpoint to start from"};
}

comm::CollectiveOptions setup_options(const TrainOptions& options) {
  return {.deadline = options.timeouts.setup,
          .deadline_flag = "--timeout-setup",
          .purpose = "set-up outcomes"};
}

}  // namespace

void agree_on_setup(Session& session, const TrainOptions& options,
                    const std::function<void()>& work) {
  agree(session.communicator(), work, setup_options(options));
}

void wait_for_start_before(Session& session, const TrainOptions& options) {
  agree_on_setup(session, options, [&] {
    if (!session.is_first_rank() || !is_restart()) return;
    // Less long than the others wait for this rank.
    wait_for_lock(checkpoint::RunPaths(options.run_dir), options.timeouts.setup * 3 / 4,
                  [](const std::string& line) { core::print_note("--run-dir: " + line); });
  });
}

std::vector<std::int64_t> saved_steps(Session& session, const TrainOptions& options) {
  std::vector<std::int64_t> steps;
  agree_on_setup(session, options, [&] {
    if (session.is_first_rank()) steps = steps_to_go_on_from(options);
  });
  return steps;
}

std::optional<checkpoint::Checkpoint> checkpoint_to_resume(Session& session,
                                                           const TrainOptions& options,
                                                           std::vector<std::string>& notes) {
  return agreed_checkpoint(session.communicator(), reading_options(options),
                           [&] { return look_for_checkpoint(options, notes); });
}

bool has_nothing_left(Session& session, const TrainOptions& options,
                      const std::optional<checkpoint::Checkpoint>& resume_from) {
  if (!resume_from) return false;  // on all ranks, and so is what follows
  const std::int64_t step = resume_from->manifest.step;
  if (step < options.steps && !options.evaluation.target_val_loss) return false;
  bool nothing = false;
  agree_on_setup(session, options, [&] {
    const checkpoint::RunPaths paths(options.run_dir);
    nothing = session.is_first_rank() && is_checkpoint_of(paths, *resume_from) &&
              is_done(paths.run_json(), options, step);
  });
  return !of_rank_0(session, nothing ? "nothing" : "", "whether steps are left").empty();
}

void note_other_data(const TrainOptions& options, const data::Fingerprints& data,
                     const checkpoint::Checkpoint& resume_from, std::vector<std::string>& notes) {
  const std::filesystem::path file = run_of(resume_from).run_json();
  if (!core::is_there(file)) return;
  try {
    const data::Fingerprints before = read_run_record(file).data;
    const auto differs = [](const std::string& a, const std::string& b) {
      return !a.empty() && !b.empty() && a != b;
    };
    if (differs(before.train, data.train) || differs(before.validation, data.validation))
      notes.push_back(fmt::format(
          "warning: --data {}: expected the tokens of the run so far (fingerprints {} {}), found "
          "others ({} {}): what comes is not what the same run would have trained on",
          options.data.source, before.train, before.validation, data.train, data.validation));
  } catch (const core::Error& error) {
    notes.push_back(fmt::format(
        "warning: {}; whether the data is that of the run so far is not known", error.what()));
  }
}

std::filesystem::path check_start(Session& session, const TrainOptions& options,
                                  const std::optional<checkpoint::Checkpoint>& resume_from,
                                  std::vector<std::string>& notes) {
  WeightsFolder weights;
  if (!resume_from && !options.model.init.empty())
    weights = weights_to_start_from(session, options, notes);
  agree_on_setup(session, options, [&] {
    if (resume_from) {
      require_same_model(*resume_from, options.model.config);
      require_same_algorithm(*resume_from, options.parallel.optimizer.algorithm);
    } else if (!weights.folder.empty()) {
      const model::ModelConfig config = read_model_config(weights.folder);
      model::check_same_architecture(options.model.config, config, weights.folder.string());
      require_no_other_blocks(config, checkpoint::TensorSet::open_model(weights.folder),
                              weights.folder);
      if (session.is_first_rank() && !weights.is_intact) require_intact(weights.folder);
    }
  });
  return weights.folder;
}

std::unique_ptr<checkpoint::RunDirectory> claim_run_directory(
    Session& session, const TrainOptions& options,
    const std::optional<checkpoint::Checkpoint>& resume_from,
    const std::vector<std::int64_t>& saved, std::vector<std::string>& notes) {
  std::unique_ptr<checkpoint::RunDirectory> directory;
  agree_on_setup(session, options, [&] {
    if (!session.is_first_rank()) return;
    directory = std::make_unique<checkpoint::RunDirectory>(
        options.run_dir, used_run_policy(options, resume_from), "--run-dir",
        checkpoint::remove_run_leftovers);
    require_as_it_was(options, saved);
    const std::string text = config_text(options);
    if (resume_from) note_changes(run_of(*resume_from).config(), text, notes);
    core::write_file_atomically(directory->paths().config(), text);
  });
  require_shared_run_directory(session, options);
  return directory;
}

std::function<void()> make_hold(std::shared_ptr<checkpoint::RunDirectory> directory,
                                const TrainOptions& options) {
  if (!directory) return [] {};
  return [directory = std::move(directory), text = config_text(options)] {
    const std::optional<std::string> news = directory->hold();
    if (!news) return;
    core::print_warning(*news);
    try {
      core::write_file_atomically(directory->paths().config(), text);
    } catch (const core::Error& error) {
      throw core::CheckpointError(error.what());
    }
  };
}

}  // namespace sidestream::launch

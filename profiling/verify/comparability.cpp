#include "profiling/verify/comparability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"

namespace sidestream::verify {
namespace {

using Values = std::map<std::string, std::string>;

// What a step computes, on which data, in how many ranks.
const std::set<std::string>& refused_fields() {
  static const std::set<std::string> fields = {"model",
                                               "layers",
                                               "heads",
                                               "width",
                                               "vocab-size",
                                               "init",
                                               "tokenizer",
                                               "dropout",
                                               "sequence-length",
                                               "data",
                                               "shuffle",
                                               "seed",
                                               "grad-accumulation",
                                               "batch-size-per-rank",
                                               "steps",
                                               "eval-tokens",  // whose loss decides
                                               "device",
                                               "parameters",
                                               "world_size"};
  return fields;
}

// Of the machine and the build, which explain a change as well as the flags do.
const std::set<std::string>& machine_fields() {
  static const std::set<std::string> fields = {"processor",  "cores",   "nodes", "gpu",
                                               "gpu_driver", "version", "build"};
  return fields;
}

// Of one call, not of what it does.
const std::set<std::string>& ignored_fields() {
  static const std::set<std::string> fields = {"run-dir",          "resume",           "log-every",
                                               "checkpoint-every", "keep-checkpoints", "eval-every",
                                               "print-config",     "dry-run",          "config"};
  return fields;
}

// What changes the path of training beyond rounding.
const std::set<std::string>& training_fields() {
  static const std::set<std::string> fields = {
      "algorithm", "lr",  "min-lr-ratio", "lr-schedule", "warmup-steps", "weight-decay", "beta1",
      "beta2",     "eps", "momentum",     "grad-clip",   "fix-batch",    "nan-policy"};
  return fields;
}

std::string value_or_none(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not set" : found->second;
}

// What `--device auto` chose is said by the GPUs of the two records.
bool may_be_one_device(const std::string& name, const std::string& left, const std::string& right) {
  const auto open = [](const std::string& value) { return value == "auto" || value == "not set"; };
  return name == "device" && (open(left) || open(right));
}

void compare(const Values& base, const Values& fresh, DifferenceKind otherwise,
             std::vector<Difference>& found) {
  std::set<std::string> names;
  for (const auto& [name, value] : base) names.insert(name);
  for (const auto& [name, value] : fresh) names.insert(name);
  for (const std::string& name : names) {
    const std::string left = value_or_none(base, name), right = value_or_none(fresh, name);
    if (left == right || ignored_fields().contains(name)) continue;
    const bool refused = refused_fields().contains(name) && !may_be_one_device(name, left, right);
    found.push_back({name, left, right, refused ? DifferenceKind::kRefused : otherwise});
  }
}

std::string named(const RecordedRun& run, const std::string& fingerprint) {
  return fmt::format("{} (fingerprint {})", value_or_none(run.config, "data"), fingerprint);
}

// The folder's name is not what was read: the same tokens may lie elsewhere, and others under one
// name.
void compare_data(const RecordedRun& base, const RecordedRun& fresh,
                  std::vector<Difference>& found) {
  if (base.data.train.empty() || fresh.data.train.empty()) return;
  const auto of_folder = std::find_if(found.begin(), found.end(),
                                      [](const Difference& one) { return one.field == "data"; });
  const bool other_tokens = base.data.train != fresh.data.train;
  if (!other_tokens && base.data.validation == fresh.data.validation) {
    if (of_folder != found.end()) of_folder->kind = DifferenceKind::kEnvironment;
    return;
  }
  if (of_folder != found.end()) found.erase(of_folder);
  const auto shown = [&](const RecordedRun& run) {
    return named(run, other_tokens                  ? run.data.train
                      : run.data.validation.empty() ? "none of validation data"
                                                    : run.data.validation + " of validation data");
  };
  found.push_back({"data", shown(base), shown(fresh), DifferenceKind::kRefused});
}

template <typename Number>
std::string number_or_none(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "not there";
}

// A run that failed or was stopped has other steps than one that was not.
void compare_ends(const RecordedRun& base, const RecordedRun& fresh,
                  std::vector<Difference>& found) {
  if (base.exit_code != fresh.exit_code)
    found.push_back({"exit_code", number_or_none(base.exit_code), number_or_none(fresh.exit_code),
                     DifferenceKind::kRefused});
  if (base.last_step != fresh.last_step)
    found.push_back({"last_step", number_or_none(base.last_step), number_or_none(fresh.last_step),
                     DifferenceKind::kRefused});
}

}  // namespace

std::vector<Difference> differences_of(const Values& base_config, const Values& fresh_config) {
  std::vector<Difference> found;
  compare(base_config, fresh_config, DifferenceKind::kSubject, found);
  return found;
}

std::vector<Difference> differences_of(const RecordedRun& base, const RecordedRun& fresh) {
  std::vector<Difference> found = differences_of(base.config, fresh.config);
  compare_data(base, fresh, found);
  compare_ends(base, fresh, found);
  Values left = base.environment, right = fresh.environment;
  left.erase("precision");  // a flag, compared above
  right.erase("precision");
  left["version"] = base.version;
  right["version"] = fresh.version;
  compare(left, right, DifferenceKind::kEnvironment, found);
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.field < other.field; });
  return found;
}

void add_new_ones(const std::vector<Difference>& found, std::vector<Difference>& all) {
  for (const Difference& one : found) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const Difference& before) {
      return before.field == one.field;
    });
    if (!known) all.push_back(one);
  }
}

namespace {

std::string sentence_of(const Difference& one) {
  if (one.field == "build") return "build is not the same";  // it is a page of text
  if (one.field == kOperations)
    return fmt::format(
        "most time of the base ({}) and of the new side ({}) is in operations that the other does "
        "not have: traces of two models, or of two programs",
        one.base, one.fresh);
  return fmt::format("{} is {} and {}", one.field, one.base, one.fresh);
}

}  // namespace

std::string refusal_text(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& one : differences) {
    const bool machine =
        one.kind == DifferenceKind::kEnvironment && machine_fields().contains(one.field);
    if (one.kind != DifferenceKind::kRefused && !machine) continue;
    if (!text.empty()) text += ", ";
    text += sentence_of(one);
  }
  return text;
}

void refuse_repeated(const std::vector<RecordedRun>& runs) {
  std::map<std::string, std::filesystem::path> seen;
  for (const RecordedRun& run : runs) {
    std::set<std::string> names = {std::filesystem::weakly_canonical(run.folder).string()};
    if (!run.started_at.empty()) names.insert(run.started_at + " " + run.command_line);
    for (const std::string& name : names) {
      const auto [before, is_new] = seen.emplace(name, run.folder);
      if (!is_new)
        throw core::ConfigError(
            fmt::format("{} and {} are the same run: every block needs a run of its own",
                        before->second.string(), run.folder.string()));
    }
  }
}

bool same_training(const std::vector<Difference>& differences) {
  return std::none_of(differences.begin(), differences.end(), [](const Difference& one) {
    return one.kind == DifferenceKind::kRefused || training_fields().contains(one.field);
  });
}

}  // namespace sidestream::verify

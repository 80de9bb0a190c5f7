#include "core/faults/fault_injector.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>
#include <thread>

#include "core/base/error.hpp"

namespace sidestream::faults {
namespace {

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void end_process(const Fault& fault) {
  if (fault.kind == Kind::kKill) raise(SIGKILL);
  if (fault.kind == Kind::kStop) raise(SIGSTOP);
  if (fault.kind == Kind::kExit) _exit(fault.code);
}

// At once, or while the run goes on: a moment that lies at no place in particular.
void end_process_in_time(const Fault& fault) {
  if (fault.ms.count() == 0) return end_process(fault);
  std::thread([fault] {
    std::this_thread::sleep_for(fault.ms);
    end_process(fault);
  }).detach();
}

void happen(const Fault& fault) {
  std::fprintf(stderr, "sidestream: planted fault: %s\n", describe(fault).c_str());
  switch (fault.kind) {
    case Kind::kKill:
    case Kind::kStop:
    case Kind::kExit:
      return end_process_in_time(fault);
    case Kind::kHang:
      sleep_for_ever();
    case Kind::kThrow:
      throw core::Error("planted fault: " + describe(fault));
    case Kind::kMemory:
      throw std::bad_alloc();
    case Kind::kDiskFull:
      throw core::CheckpointError("planted fault: " + describe(fault) +
                                  ": No space left on device");
    case Kind::kSlow:
    case Kind::kNan:
    case Kind::kSpike:
    case Kind::kInfGrad:
    case Kind::kFlip:
    case Kind::kDesync:
      return;
  }
}

// Checkpoints and evaluations do not come at every step: the next one counts.
bool comes_at(const Fault& fault, std::int64_t step) {
  if (!fault.step) return true;
  const bool rare = fault.at == Point::kEvaluation || fault.at == Point::kCheckpoint ||
                    fault.at == Point::kCommit;
  const bool for_ever = fault.steps == 0;
  return step >= *fault.step && (rare || for_ever || step < *fault.step + fault.steps);
}

bool acts_at_a_place(Kind kind) {
  switch (kind) {
    case Kind::kNan:
    case Kind::kSpike:
    case Kind::kInfGrad:
    case Kind::kFlip:
    case Kind::kDesync:
      return false;
    default:
      return true;
  }
}

}  // namespace

int Victim::attempt_of_this_process() {
  const char* const text = std::getenv("SIDESTREAM_ATTEMPT");
  const int number = text == nullptr ? 1 : std::atoi(text);
  return number < 1 ? 1 : number;
}

FaultInjector::FaultInjector(const std::vector<Fault>& faults, const Victim& victim) {
  for (const Fault& fault : faults) {
    const bool mine = !fault.rank || *fault.rank == victim.rank;
    const bool now = fault.attempt == 0 || fault.attempt == victim.attempt;
    if (mine && now) planted_.push_back({.fault = fault});
  }
}

std::vector<Fault> FaultInjector::take(const std::function<bool(const Fault&)>& wanted,
                                       std::int64_t step) {
  const std::lock_guard lock(mutex_);
  std::vector<Fault> due;
  for (Planted& planted : planted_) {
    const Fault& fault = planted.fault;
    if (planted.last_step > step) planted.last_step = -1;  // the run has gone back
    if (!wanted(fault) || !comes_at(fault, step)) continue;
    if (fault.steps > 0 && planted.times >= fault.steps) continue;
    if (planted.last_step == step) continue;  // a step has several micro-steps
    planted.last_step = step;
    ++planted.times;
    due.push_back(fault);
  }
  return due;
}

void FaultInjector::pass(Point point, std::int64_t step) {
  if (planted_.empty()) return;
  const auto here = [point](const Fault& fault) {
    return fault.at == point && acts_at_a_place(fault.kind);
  };
  for (const Fault& fault : take(here, step)) {
    if (fault.kind == Kind::kSlow) std::this_thread::sleep_for(fault.ms);
    if (fault.kind != Kind::kSlow) happen(fault);
  }
}

double FaultInjector::loss_factor(std::int64_t step) {
  if (planted_.empty()) return 1;
  double factor = 1;
  const auto changes_loss = [](const Fault& fault) {
    return fault.kind == Kind::kNan || fault.kind == Kind::kSpike;
  };
  for (const Fault& fault : take(changes_loss, step)) {
    happen(fault);
    factor *= fault.kind == Kind::kNan ? std::numeric_limits<double>::quiet_NaN() : fault.factor;
  }
  return factor;
}

bool FaultInjector::is_due(Kind kind, std::int64_t step) {
  if (planted_.empty()) return false;
  const auto due = take([kind](const Fault& fault) { return fault.kind == kind; }, step);
  for (const Fault& fault : due) happen(fault);
  return !due.empty();
}

void require_ranks(const std::vector<Fault>& faults, int world_size) {
  for (const Fault& fault : faults) {
    if (fault.rank.value_or(0) < world_size) continue;
    throw core::ConfigError("--inject: " + describe(fault) + ": the ranks are 0 to " +
                            std::to_string(world_size - 1));
  }
}

void require_steps(const std::vector<Fault>& faults, std::int64_t last_step) {
  for (const Fault& fault : faults) {
    const std::int64_t step = fault.step.value_or(0);
    const bool before_steps =
        fault.at == Point::kStart || fault.at == Point::kSetUp || fault.at == Point::kRestore;
    if (before_steps && step > 0)
      throw core::ConfigError("--inject: " + describe(fault) +
                              ": no step has begun there, leave `step` out");
    if (step <= last_step) continue;
    throw core::ConfigError("--inject: " + describe(fault) + ": the last step is " +
                            std::to_string(last_step) + " (--steps)");
  }
}

bool is_permitted() {
  const char* const permission = std::getenv("SIDESTREAM_FAULT_INJECTION");
  return permission != nullptr && std::string_view(permission) == "1";
}

void require_permission(const std::vector<Fault>& faults) {
  if (faults.empty() || is_permitted()) return;
  throw core::ConfigError(
      "--inject (in a configuration: inject) plants faults that end or spoil the run: it is for "
      "tests and exercises, and "
      "needs SIDESTREAM_FAULT_INJECTION=1 in the environment");
}

}  // namespace sidestream::faults

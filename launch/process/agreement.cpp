#include "launch/process/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "launch/process/failure.hpp"

namespace sidestream::launch {
namespace {

// "CODE:message", or empty where the work succeeded.
std::string outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    const Failure failure = describe_failure(error);
    return fmt::format("{}:{}", static_cast<int>(failure.code), failure.message);
  }
}

[[noreturn]] void throw_agreed(const std::vector<std::string>& outcomes) {
  const auto failed = std::find_if(outcomes.begin(), outcomes.end(),
                                   [](const auto& text) { return !text.empty(); });
  const std::size_t colon = failed->find(':');
  const auto code = static_cast<core::ExitCode>(std::stoi(failed->substr(0, colon)));
  const std::string message = failed->substr(colon + 1);
  const bool everywhere = std::all_of(outcomes.begin(), outcomes.end(),
                                      [&](const auto& text) { return text == *failed; });
  if (everywhere) throw AgreedError(message, code);
  throw AgreedError(fmt::format("rank {}: {}", failed - outcomes.begin(), message), code);
}

}  // namespace

void agree(comm::Communicator& communicator, const std::function<void()>& work,
           const comm::CollectiveOptions& options) {
  const std::vector<std::string> outcomes = communicator.exchange(outcome_of(work), options);
  if (std::any_of(outcomes.begin(), outcomes.end(),
                  [](const auto& text) { return !text.empty(); })) {
    throw_agreed(outcomes);
  }
}

}  // namespace sidestream::launch

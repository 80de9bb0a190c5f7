#include "launch/process/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
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

// What comes before the colon. A rank that is in another exchange sends something else.
core::ExitCode code_in(std::string_view outcome, std::ptrdiff_t rank) {
  const std::string_view digits = outcome.substr(0, outcome.find(':'));
  int code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
  if (error == std::errc() && end == digits.data() + digits.size() && digits != outcome)
    return static_cast<core::ExitCode>(code);
  throw core::CollectiveError(
      fmt::format("rank {} sent {} bytes that say nothing about how its work went: it is in "
                  "another collective; --check-collectives names it",
                  rank, outcome.size()));
}

[[noreturn]] void throw_agreed(const std::vector<std::string>& outcomes) {
  const auto failed = std::find_if(outcomes.begin(), outcomes.end(),
                                   [](const auto& text) { return !text.empty(); });
  const std::ptrdiff_t rank = failed - outcomes.begin();
  const core::ExitCode code = code_in(*failed, rank);
  const std::string message = failed->substr(failed->find(':') + 1);
  const bool everywhere = std::all_of(outcomes.begin(), outcomes.end(),
                                      [&](const auto& text) { return text == *failed; });
  if (everywhere) throw AgreedError(message, code);
  throw AgreedError(fmt::format("rank {}: {}", rank, message), code);
}

}  // namespace

void agree(comm::Communicator& communicator, const std::function<void()>& work,
           const comm::CollectiveOptions& options) {
  comm::CollectiveOptions named = options;
  if (named.purpose == comm::Purpose()) named.purpose = "outcomes";
  const std::vector<std::string> outcomes = communicator.exchange(outcome_of(work), named);
  if (std::any_of(outcomes.begin(), outcomes.end(),
                  [](const auto& text) { return !text.empty(); })) {
    throw_agreed(outcomes);
  }
}

}  // namespace sidestream::launch

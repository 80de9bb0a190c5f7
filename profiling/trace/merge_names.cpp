#include "profiling/trace/merge_names.hpp"

#include "profiling/trace/decimal.hpp"
#include "profiling/trace/name_table.hpp"
#include "profiling/trace/utf8_repair.hpp"

namespace sidestream::trace {

MergeNames::Thread& MergeNames::thread_of(std::string_view process, std::string_view thread,
                                          int lane) {
  constexpr std::int64_t kThreadsOfRank = 100000;
  const auto [place, is_new] =
      threads_.try_emplace({std::string(process), std::string(thread), lane});
  if (is_new)
    place->second.number =
        (place_ + 1) * kThreadsOfRank + static_cast<std::int64_t>(threads_.size());
  return place->second;
}

std::int64_t MergeNames::thread(std::string_view process, std::string_view thread, int lane) {
  if (last_number_ != 0 && last_key_.process == process && last_key_.thread == thread &&
      last_key_.lane == lane)
    return last_number_;
  last_number_ = thread_of(process, thread, lane).number;
  last_key_ = {std::string(process), std::string(thread), lane};
  return last_number_;
}

void MergeNames::name_thread(std::string_view process, std::string_view thread,
                             std::string_view name) {
  thread_of(process, thread).name = with_valid_utf8(name);
}

// Numbers stay below 2^53, which is what JavaScript's readers can tell apart.
std::uint64_t MergeNames::arrow(std::string_view id) const {
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 53) - 1;
  const auto files = static_cast<std::uint64_t>(files_);
  std::uint64_t number = identifier_of(id);
  if (number > kLargest / files - 1) number = hash_of(id) % (kLargest / files);
  return number * files + static_cast<std::uint64_t>(file_);
}

std::string MergeNames::label_of(const Key& key, const Thread& thread) const {
  if (key.lane > 0) {
    const Key beside{key.process, key.thread};
    const auto found = threads_.find(beside);
    return label_of(beside, found == threads_.end() ? Thread{} : found->second) + ", beside it " +
           std::to_string(key.lane);
  }
  if (!thread.name.empty()) return thread.name;
  const bool number =
      !key.thread.empty() && key.thread.find_first_not_of("-0123456789") == std::string::npos;
  if (!number) return key.thread.empty() ? "events of no thread" : key.thread;
  return key.process == "device" ? "stream " + key.thread : "thread " + key.thread;
}

std::string MergeNames::escaped(std::string_view text) {
  std::string result;
  for (const char one : text) {
    if (one == '"' || one == '\\') result += '\\';
    if (static_cast<unsigned char>(one) >= 0x20) result += one;
  }
  return result;
}

std::string MergeNames::process_text(const char* what, const std::string& argument) const {
  return "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(rank_) +
         ",\"tid\":0,\"args\":{" + argument + "}}";
}

std::string MergeNames::thread_text(const char* what, const Thread& thread,
                                    const std::string& argument) const {
  return "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(rank_) +
         ",\"tid\":" + std::to_string(thread.number) + ",\"args\":{" + argument + "}}";
}

}  // namespace sidestream::trace

// Numbers of a merged trace: one process for each rank, threads and arrows that no two ranks share.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sidestream::trace {

class MergeNames {
 public:
  // `place` counts the ranks of the trace from 0, `files` are all files of all ranks.
  MergeNames(int rank, int place, int files) : rank_(rank), place_(place), files_(files) {}

  // What comes now is of this file, counted from 0 over all ranks: two windows of a rank use the
  // same numbers for different arrows.
  void begin_file(int file) noexcept { file_ = file; }

  int process() const noexcept { return rank_; }
  // The number of a thread, made when it is new. Above 0 `lane` is beside it, for what would cross
  // other events of the thread.
  std::int64_t thread(std::string_view process, std::string_view thread, int lane = 0);
  void name_thread(std::string_view process, std::string_view thread, std::string_view name);
  // Of a flow arrow or an asynchronous event.
  std::uint64_t arrow(std::string_view id) const;
  // Metadata events for the process and its threads, each as a JSON object.
  template <typename Write>
  void write(Write write_event) const {
    write_event(process_text("process_name", "\"name\":\"rank " + std::to_string(rank_) + "\""));
    write_event(process_text("process_sort_index", "\"sort_index\":" + std::to_string(rank_)));
    for (const auto& [key, thread] : threads_) {
      write_event(thread_text("thread_name", thread,
                              "\"name\":\"" + escaped(label_of(key, thread)) + "\""));
      write_event(thread_text("thread_sort_index", thread,
                              "\"sort_index\":" + std::to_string(thread.number)));
    }
  }

 private:
  struct Thread {
    std::int64_t number = 0;
    std::string name;
  };
  struct Key {
    std::string process;
    std::string thread;
    int lane = 0;
    auto operator<=>(const Key&) const = default;
  };

  Thread& thread_of(std::string_view process, std::string_view thread, int lane = 0);
  std::string label_of(const Key& key, const Thread& thread) const;
  static std::string escaped(std::string_view text);
  std::string process_text(const char* what, const std::string& argument) const;
  std::string thread_text(const char* what, const Thread& thread,
                          const std::string& argument) const;

  int rank_;
  int place_;
  int files_;
  int file_ = 0;
  std::map<Key, Thread> threads_;
  Key last_key_;
  std::int64_t last_number_ = 0;
};

}  // namespace sidestream::trace

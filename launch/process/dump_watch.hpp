// Answers DumpRequests beside a program that goes on: a thread of its own, to which SIGUSR2 comes.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "launch/process/dump_request.hpp"

namespace sidestream::launch {

class DumpWatch {
 public:
  // The requests outlive it. thread_name: 15 characters at most. `answer` is called by that thread,
  // once a request, and never throws.
  DumpWatch(const DumpRequest& requests, std::string thread_name, std::function<void()> answer);
  // Waits for the answer that is being given.
  ~DumpWatch();
  DumpWatch(const DumpWatch&) = delete;
  DumpWatch& operator=(const DumpWatch&) = delete;

 private:
  const DumpRequest& requests_;
  std::jthread thread_;
};

}  // namespace sidestream::launch

#include "launch/process/dump_watch.hpp"

#include <chrono>
#include <csignal>
#include <utility>

#include "core/base/worker_thread.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::milliseconds kForever{3'600'000};

}  // namespace

DumpWatch::DumpWatch(const DumpRequest& requests, std::string thread_name,
                     std::function<void()> answer)
    : requests_(requests),
      thread_([&requests, name = std::move(thread_name),
               answer = std::move(answer)](const std::stop_token& stop) {
        core::become_worker_thread(name, {SIGUSR2});
        while (!stop.stop_requested()) {
          if (requests.wait_for(kForever) && !stop.stop_requested()) answer();
        }
      }) {}

DumpWatch::~DumpWatch() {
  thread_.request_stop();
  requests_.interrupt();
}

}  // namespace sidestream::launch

// What recording costs, in nanoseconds: a range told to the recorder that keeps it, told to the
// recorder that only adds up phases, the account of a step, a sample of the system. Blocks of each
// kind in turn; the median over blocks.
//
//   bench_ranges [blocks]        one line a kind: "name nanoseconds"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "profiling/ranges/ranges.hpp"
#include "profiling/record/process_recorder.hpp"
#include "profiling/record/system_sampler.hpp"

namespace {

using namespace sidestream;
using ranges::Phase;

constexpr int kPerBlock = 1000;  // short: a busy machine interrupts few of them
constexpr int kPhasesOfAStep = 7, kCollectivesOfAStep = 24;

struct Kind {
  const char* name;
  bool keeps;
  int repeats;
  std::function<void()> work;
  std::vector<double> ns = {};
};

void plain_range() { const ranges::ScopedRange range(Phase::kForward); }

void range_with_payload() {
  const ranges::ScopedRange range(Phase::kAllReduce, {.bucket = 1, .sequence = 2, .bytes = 4096});
}

void operation_in_flight() {
  ranges::AsyncRange range(Phase::kAllReduce, {.bucket = 1, .sequence = 2, .bytes = 4096});
}

// As the trainer's own: phases, and collectives that end meanwhile.
void step() {
  const ranges::StepRange range(7);
  for (int i = 0; i < kPhasesOfAStep; ++i) plain_range();
  for (int i = 0; i < kCollectivesOfAStep; ++i) operation_in_flight();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  if (!record::process_recorder_is_attached()) {
    std::fprintf(stderr, "bench_ranges: the recorder is not attached: is a tool?\n");
    return 2;
  }
  record::SystemSampler sampler("");
  std::vector<Kind> kinds = {{"clock", false, kPerBlock, [] { record::monotonic_ns(); }},
                             {"range_kept", true, kPerBlock, plain_range},
                             {"range_not_kept", false, kPerBlock, plain_range},
                             {"range_with_payload_kept", true, kPerBlock, range_with_payload},
                             {"operation_kept", true, kPerBlock, operation_in_flight},
                             {"operation_not_kept", false, kPerBlock, operation_in_flight},
                             {"step_kept", true, kPerBlock / 20, step},
                             {"step_not_kept", false, kPerBlock / 20, step},
                             {"sample", false, kPerBlock / 200, [&] { sampler.sample(); }}};
  for (int block = 0; block < blocks; ++block) {
    for (Kind& kind : kinds) {
      record::process_recorder().keep(kind.keeps ? record::Keeping::kOn : record::Keeping::kOff);
      const std::int64_t begin = record::monotonic_ns();
      for (int i = 0; i < kind.repeats; ++i) kind.work();
      kind.ns.push_back(static_cast<double>(record::monotonic_ns() - begin) / kind.repeats);
    }
  }
  for (const Kind& kind : kinds) std::printf("%s %.1f\n", kind.name, median(kind.ns));
  return 0;
}

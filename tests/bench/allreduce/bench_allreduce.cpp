// All-reduce of buffers of fp32 or bf16: ours in place (allocated buffers) against MPI_Allreduce,
// interleaved, on the ranks that mpirun gives it. A sample is the slowest rank's time from a
// barrier to the end of the wait.
//
//   mpirun -np 2 --bind-to none bench_allreduce [repeats] [--samples] [--only KIB] [--bf16]
//
// --samples prints one line a sample ("ours 1048576 253.1", the last in microseconds) instead of
// the table of medians. MPI has no type for bf16: there its sum is an operation of two bytes that
// calls our vectorised loop, which is the best that a user could give it.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/factory.hpp"
#include "comm/reduce.hpp"

namespace {

using sidestream::comm::Communicator;
using sidestream::core::DType;

constexpr std::size_t kKiB = std::size_t{1} << 10;
constexpr std::array<std::size_t, 6> kSizesKib = {4, 64, 1024, 4 * 1024, 25 * 1024, 64 * 1024};
constexpr int kWarmUps = 3;

struct Options {
  int repeats = 15;
  bool samples = false;
  std::size_t only_kib = 0;  // 0: all sizes
  DType dtype = DType::kFloat32;
};

// What MPI_Allreduce is told about the elements.
struct MpiSum {
  MPI_Datatype type = MPI_FLOAT;
  MPI_Op operation = MPI_SUM;
};

void add_bfloat16(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const std::array<const std::byte*, 2> inputs = {static_cast<std::byte*>(in_out),
                                                  static_cast<std::byte*>(in)};
  const std::array<std::byte*, 1> output = {static_cast<std::byte*>(in_out)};
  sidestream::comm::sum_in_order(inputs, output, static_cast<std::size_t>(*count),
                                 DType::kBFloat16);
}

MpiSum mpi_sum(DType dtype) {
  MpiSum sum;
  if (dtype == DType::kFloat32) return sum;
  MPI_Type_contiguous(2, MPI_BYTE, &sum.type);
  MPI_Type_commit(&sum.type);
  MPI_Op_create(add_bfloat16, /*commute=*/1, &sum.operation);
  return sum;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--samples") == 0) {
      options.samples = true;
    } else if (std::strcmp(argv[i], "--bf16") == 0) {
      options.dtype = DType::kBFloat16;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      options.only_kib = static_cast<std::size_t>(std::max(1, std::atoi(argv[++i])));
    } else {
      options.repeats = std::max(1, std::atoi(argv[i]));
    }
  }
  return options;
}

// Each side starts from its own barrier: on busy cores a rank leaves a spinning one a time slice
// after the other.
double slowest_us(const std::function<void()>& barrier, const std::function<void()>& operation) {
  barrier();
  const auto begin = std::chrono::steady_clock::now();
  operation();
  double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return us;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Samples {
  std::vector<double> ours_us;
  std::vector<double> mpi_us;
};

// One operation after the other, as osu_allreduce and nccl-tests do: a run of ours, then a run of
// Open MPI's. In turns, each would find its buffer driven out of the caches by the other.
Samples measure(Communicator& communicator, std::byte* ours, std::vector<std::byte>& plain,
                std::size_t bytes, const MpiSum& mpi, const Options& options) {
  const std::size_t count = bytes / sidestream::core::size_of(options.dtype);
  const auto alone = sidestream::comm::waited_for();
  Samples samples;
  for (int i = -kWarmUps; i < options.repeats; ++i) {
    const double us =
        slowest_us([&] { communicator.barrier(); },
                   [&] { communicator.all_reduce(ours, count, options.dtype, alone).wait(); });
    if (i >= 0) samples.ours_us.push_back(us);
  }
  for (int i = -kWarmUps; i < options.repeats; ++i) {
    const double us =
        slowest_us([] { MPI_Barrier(MPI_COMM_WORLD); },
                   [&] {
                     MPI_Allreduce(MPI_IN_PLACE, plain.data(), static_cast<int>(count), mpi.type,
                                   mpi.operation, MPI_COMM_WORLD);
                   });
    if (i >= 0) samples.mpi_us.push_back(us);
  }
  return samples;
}

void report(std::size_t bytes, const Samples& samples, const Options& options) {
  if (options.samples) {
    for (const double us : samples.ours_us) std::printf("ours %zu %.1f\n", bytes, us);
    for (const double us : samples.mpi_us) std::printf("openmpi %zu %.1f\n", bytes, us);
    return;
  }
  const double ours = median(samples.ours_us);
  const double mpi = median(samples.mpi_us);
  std::printf("%6zu KiB  ours %9.1f us  Open MPI %9.1f us  ratio %5.2f\n", bytes / kKiB, ours, mpi,
              mpi / ours);
}

}  // namespace

int main(int argc, char** argv) {
  sidestream::comm::MpiEnvironment environment(&argc, &argv);
  const Options options = parse(argc, argv);
  std::vector<std::string> warnings;
  const auto communicator = sidestream::comm::make_communicator(
      environment, {.backend = sidestream::comm::Backend::kMpi}, warnings);
  const std::size_t largest = kSizesKib.back() * kKiB;
  std::byte* ours = communicator->allocate(largest).data;
  std::vector<std::byte> plain(largest);
  const MpiSum mpi = mpi_sum(options.dtype);
  for (const std::size_t kib : kSizesKib) {
    if (options.only_kib != 0 && kib != options.only_kib) continue;
    const std::size_t bytes = kib * kKiB;
    const Samples samples = measure(*communicator, ours, plain, bytes, mpi, options);
    if (environment.rank() == 0) report(bytes, samples, options);
  }
  if (environment.rank() == 0)
    std::printf("# progress thread: %.3f s of CPU time\n", 1e-9 * communicator->progress_cpu_ns());
  return 0;
}

// main of the tests that run under mpirun: rank 0 reports as GoogleTest does, the others only what
// fails. The process fails when a rank failed a test or threw: every rank ends with the same code.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>

#include "tests/cmake/mpi_test_environment.hpp"

namespace sidestream::test {
namespace {

class FailurePrinter final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  // Kept from here: GoogleTest holds its lock while it reports a failure, and may not be asked
  // then.
  void OnTestStart(const ::testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s failed at %s:%d\n%s\n", rank_, test_.c_str(),
                 result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  int rank_;
  std::string test_ = "?";
};

void quieten_other_ranks(int rank) {
  if (rank == 0) return;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(rank));
}

comm::MpiEnvironment* the_environment = nullptr;  // set once by main, before any test

int run(comm::MpiEnvironment& environment) {
  the_environment = &environment;
  quieten_other_ranks(environment.rank());
  int failed = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test has this name: a filter that finds nothing would pass\n");
    failed = 1;
  }
  if (environment.failure_flag()->load()) environment.abort(failed == 0 ? 0 : 1);
  if (environment.active())
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return failed;
}

}  // namespace

comm::MpiEnvironment& mpi_environment() { return *the_environment; }

}  // namespace sidestream::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::GTEST_FLAG(catch_exceptions) = true;
  try {
    sidestream::comm::MpiEnvironment environment(&argc, &argv);
    return sidestream::test::run(environment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

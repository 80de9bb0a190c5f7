#include "core/base/bus_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <thread>

#include "core/base/file.hpp"
#include "core/base/mapping_table.hpp"
#include "core/base/worker_thread.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

constexpr std::size_t kBytes = 20'000;
constexpr std::size_t kRead = 9'000;

int read_at(const MappedFile& file, std::size_t place) {
  return static_cast<int>(static_cast<const volatile std::byte*>(file.bytes().data())[place]);
}

class BusErrorTest : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(path_, std::string(kBytes, 'x')); }
  ScratchFolder scratch_;
  std::filesystem::path path_ = scratch_.path() / "train_000000.bin";
};

TEST_F(BusErrorTest, a_file_that_was_cut_is_named) {
  const MappedFile file(path_);
  std::filesystem::resize_file(path_, 100);

  EXPECT_EXIT((explain_bus_errors("sidestream [rank 3]"), read_at(file, kRead)), ExitedWithCode(3),
              R"(^sidestream \[rank 3\]: .*/train_000000\.bin, byte 9000: .* cut short)");
}

TEST_F(BusErrorTest, a_file_that_was_cut_is_named_on_a_worker_thread_too) {
  const MappedFile file(path_);
  std::filesystem::resize_file(path_, 100);
  const auto read_elsewhere = [&] {
    explain_bus_errors("sidestream");
    std::thread([&] {
      become_worker_thread("ss-test");
      read_at(file, kRead);
    }).join();
  };

  EXPECT_EXIT(read_elsewhere(), ExitedWithCode(3), R"(train_000000\.bin, byte 9000: )");
}

TEST_F(BusErrorTest, others_end_as_before) {
  EXPECT_EXIT((explain_bus_errors("sidestream"), ::raise(SIGBUS)), KilledBySignal(SIGBUS), "^$");
}

TEST_F(BusErrorTest, mapping_is_known_while_it_stands) {
  const std::byte* begin = nullptr;
  {
    MappedFile file(path_);
    begin = file.bytes().data();
    const MappedFile moved = std::move(file);

    const MappedPlace place = find_mapping(begin + 7);
    EXPECT_EQ(place.file.data(), path_.string());
    EXPECT_EQ(place.offset_bytes, 7U);
    EXPECT_EQ(find_mapping(begin + kBytes).file[0], '\0');
  }
  EXPECT_EQ(find_mapping(begin).file[0], '\0');
}

TEST_F(BusErrorTest, mapping_ofALongNameKeepsItsEnd) {
  const std::byte place{};
  note_mapping(&place, 1, "/" + std::string(600, 'a') + "/train.bin");

  const std::string name = find_mapping(&place).file.data();
  forget_mapping(&place);

  EXPECT_EQ(name.size(), 511U);
  EXPECT_TRUE(name.ends_with("aa/train.bin"));
}

}  // namespace
}  // namespace sidestream::core

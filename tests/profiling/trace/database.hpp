// Exports of Nsight Systems by hand.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>

namespace sidestream::test {

// A SQLite file that a script makes.
inline std::filesystem::path make_database(const std::filesystem::path& path,
                                           const std::string& script) {
  std::filesystem::create_directories(path.parent_path());
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  char* error = nullptr;
  sqlite3_exec(database, script.c_str(), nullptr, nullptr, &error);
  EXPECT_EQ(error, nullptr) << error;
  sqlite3_close(database);
  return path;
}

}  // namespace sidestream::test

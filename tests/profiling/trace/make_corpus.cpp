// Writes the first input of each fuzz target: FOLDER/corpus_kineto/first and
// FOLDER/corpus_nsys/first.
#include <sqlite3.h>

#include <filesystem>
#include <string>

#include "tests/profiling/trace/trace_text.hpp"

namespace {

constexpr const char* kExport =
    "PRAGMA page_size=512;"
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'gemm<1>'),(2,'gemm'),(3,'cudaLaunchKernel_v7000');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId "
    "INT,correlationId INT,"
    "globalPid INT,demangledName INT,shortName INT,gridX INT,blockX INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId "
    "INT,nameId INT);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT,textId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
    "(100,200,0,7,1,16777216,1,2,4,5),(150,300,1,7,2,16777216,1,2,4,5);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50,60,16777217,1,3);"
    "INSERT INTO NVTX_EVENTS VALUES (10,400,59,'ProfilerStep#5',16777217,NULL),(0,0,39,'MPI Rank "
    "3',16777217,NULL);";

}  // namespace

int main(int argc, char** argv) {
  using sidestream::test::complete_event;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  sidestream::test::write_text(
      folder / "corpus_kineto" / "first",
      sidestream::test::trace_of(
          complete_event(
              "kernel", "ncclKernel_AllReduce", "10.001", "2.5",
              R"("stream": 7, "correlation": 12, "grid": [1, 2, 3], "Collective name": "allreduce")") +
          "," +
          complete_event("cpu_op", "aten::mm \\\"x\\\" \xC3\xA4", "1.5e3", "1",
                         R"("Input Dims": [[1, 2], []])") +
          R"(,{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":5,"args":{"Bytes":5}},)"
          R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}})"));
  std::filesystem::create_directories(folder / "corpus_nsys");
  const std::filesystem::path database_file = folder / "corpus_nsys" / "first";
  std::filesystem::remove(database_file);
  sqlite3* database = nullptr;
  const bool made = sqlite3_open(database_file.c_str(), &database) == SQLITE_OK &&
                    sqlite3_exec(database, kExport, nullptr, nullptr, nullptr) == SQLITE_OK;
  sqlite3_close(database);
  return made ? 0 : 1;
}

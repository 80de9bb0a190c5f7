#include "launch/options/doctor_options.hpp"

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = DoctorOptions;
using comm::DeviceWish;

SettingTable<Options> table() {
  return {
      {"What it is to look at, and where the findings go",
       {choice<Options, DeviceWish>(
            {"device", "auto|cpu|cuda",
             "what a training would be told: with cuda a missing GPU is an error"},
            {{"auto", DeviceWish::kAuto}, {"cpu", DeviceWish::kCpu}, {"cuda", DeviceWish::kCuda}},
            [](auto& o) -> auto& { return o.device; }),
        text<Options>(
            {"run-dir", "FOLDER",
             "where a run would write: tried with a file that is never left behind"},
            [](auto& o) -> auto& { return o.run_dir; }),
        text<Options>(
            {"json", "FILE", "the same findings for scripts", "none"},
            [](auto& o) -> auto& { return o.json; })}}};
}

}  // namespace

DoctorOptions parse_doctor_options(const std::vector<std::string>& arguments) {
  return parse_command(arguments, table(), {.command = "doctor"});
}

std::string doctor_help(int width_columns) {
  return "Looks whether training can start on this machine, and what would make it slow: "
         "libraries, "
         "GPUs, processors and binding, memory, limits, the disk. Under mpirun it also compares "
         "the hosts and tries what the ranks say to each other. Every finding comes with a "
         "remedy.\n\n"
         "  sidestream doctor\n"
         "  sidestream doctor --run-dir runs/a --json doctor.json\n"
         "  launch/run -np 16 --hosts a:8,b:8 -- doctor --run-dir /shared/runs\n\n"
         "Exit code: 0 training can start; 2 it cannot, or the flags are wrong; 6 or 7 the ranks "
         "did not reach each other; 75 stopped.\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch

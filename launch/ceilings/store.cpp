#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/shallow_json.hpp"
#include "core/base/write_error.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

namespace {

// Empty: it is not set.
std::filesystem::path folder_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// No folder that everybody may write into: who can plant figures there decides what MFU says.
std::filesystem::path home_in_list_of_users() {
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr || user->pw_dir == nullptr ? "/" : user->pw_dir;
}

}  // namespace

std::filesystem::path ceilings_file() {
  const std::filesystem::path cache = folder_in("XDG_CACHE_HOME"), home = folder_in("HOME");
  if (!cache.empty()) return cache / "sidestream/ceilings.json";
  return (home.empty() ? home_in_list_of_users() : home) / ".cache/sidestream/ceilings.json";
}

namespace {

void keep_links(const LinkRates& stored, LinkRates& kept) {
  for (const auto& [ranks, rate] : stored) kept[ranks] = std::max(kept[ranks], rate);
}

// Figure by figure, of the same GPU: figures without a name may be of any.
void keep_device(const std::optional<DeviceCeilings>& stored, Ceilings& kept) {
  if (!stored || stored->name.empty()) return;
  if (!kept.device) kept.device = stored;
  if (kept.device->name != stored->name) return;
  for (const auto& [dtype, rate] : stored->flops_per_s)
    kept.device->flops_per_s[dtype] = std::max(kept.device->flops_per_s[dtype], rate);
  for (double DeviceCeilings::*figure :
       {&DeviceCeilings::memory_bytes_per_s, &DeviceCeilings::host_to_device_bytes_per_s,
        &DeviceCeilings::device_to_host_bytes_per_s})
    (*kept.device).*figure = std::max((*kept.device).*figure, (*stored).*figure);
  keep_links(stored->link_bytes_per_s, kept.device->link_bytes_per_s);
  if (kept.device->gather_paths.empty()) kept.device->gather_paths = stored->gather_paths;
}

}  // namespace

KeptCeilings keep_better(const std::optional<Ceilings>& stored, const Ceilings& fresh) {
  KeptCeilings result{.kept = fresh};
  if (!stored || stored->processor != fresh.processor) return result;
  Ceilings& kept = result.kept;
  keep_links(stored->link_bytes_per_s, kept.link_bytes_per_s);
  keep_device(stored->device, kept);
  const bool fewer_cores = fresh.cores < stored->cores;
  if (fewer_cores)
    result.remarks.push_back("the stored figures of " + std::to_string(stored->cores) +
                             " cores stay: these are of " + std::to_string(fresh.cores));
  const auto keep = [&](const char* name, double Ceilings::*figure) {
    if (!fewer_cores && (*stored).*figure <= fresh.*figure) return;
    kept.*figure = (*stored).*figure;
    if (!fewer_cores)
      result.remarks.push_back(std::string(name) + ": the stored figure is higher and stays");
  };
  // More cores are another measurement: its figures are the ones that count.
  if (fresh.cores > stored->cores) return result;
  keep("fp32", &Ceilings::fp32_flops_per_s);
  keep("bf16", &Ceilings::bf16_flops_per_s);
  keep("memory", &Ceilings::memory_bytes_per_s);
  kept.cores = stored->cores;
  kept.seconds = fewer_cores ? stored->seconds : std::max(stored->seconds, fresh.seconds);
  return result;
}

namespace {

using Json = nlohmann::json;

constexpr int kSchema = 3;

Json to_json(const LinkRates& links) {
  Json json = Json::object();
  for (const auto& [ranks, rate] : links) json[std::to_string(ranks)] = rate;
  return json;
}

LinkRates links_in(const Json& json) {
  LinkRates links;
  const Json found = json.value("link_bytes_per_s", Json::object());
  for (const auto& [ranks, rate] : found.items()) links[std::stoi(ranks)] = rate;
  return links;
}

Json to_json(const GatherPaths& paths) {
  Json json = Json::object();
  for (const auto& [ranks, rates] : paths)
    json[std::to_string(ranks)] = {{"kernels_bytes_per_s", rates.kernels_bytes_per_s},
                                   {"copy_engines_bytes_per_s", rates.copy_engines_bytes_per_s}};
  return json;
}

GatherPaths paths_in(const Json& json) {
  GatherPaths paths;
  const Json found = json.value("gather_paths", Json::object());
  for (const auto& [ranks, rates] : found.items())
    paths[std::stoi(ranks)] = {.kernels_bytes_per_s = rates.at("kernels_bytes_per_s"),
                               .copy_engines_bytes_per_s = rates.at("copy_engines_bytes_per_s")};
  return paths;
}

Json to_json(const DeviceCeilings& device) {
  return {{"name", device.name},
          {"flops_per_s", device.flops_per_s},
          {"memory_bytes_per_s", device.memory_bytes_per_s},
          {"host_to_device_bytes_per_s", device.host_to_device_bytes_per_s},
          {"device_to_host_bytes_per_s", device.device_to_host_bytes_per_s},
          {"link_bytes_per_s", to_json(device.link_bytes_per_s)},
          {"gather_paths", to_json(device.gather_paths)}};
}

// Without its GPU.
Json to_json(const Ceilings& ceilings) {
  Json json = {{"processor", ceilings.processor},
               {"cores", ceilings.cores},
               {"fp32_flops_per_s", ceilings.fp32_flops_per_s},
               {"bf16_flops_per_s", ceilings.bf16_flops_per_s},
               {"memory_bytes_per_s", ceilings.memory_bytes_per_s},
               {"seconds", ceilings.seconds}};
  json["link_bytes_per_s"] = to_json(ceilings.link_bytes_per_s);
  return json;
}

DeviceCeilings device_from(const Json& json) {
  return {.name = json.at("name"),
          .flops_per_s = json.at("flops_per_s"),
          .memory_bytes_per_s = json.at("memory_bytes_per_s"),
          .host_to_device_bytes_per_s = json.at("host_to_device_bytes_per_s"),
          .device_to_host_bytes_per_s = json.at("device_to_host_bytes_per_s"),
          .link_bytes_per_s = links_in(json),
          .gather_paths = paths_in(json)};
}

// By name. Files of the first two schemas hold one GPU of a processor.
Json devices_in(const Json& machine) {
  if (machine.contains("devices")) return machine.at("devices");
  if (!machine.contains("device")) return Json::object();
  return {{machine.at("device").at("name").get<std::string>(), machine.at("device")}};
}

Ceilings ceilings_from(const Json& json, const std::string& gpu) {
  Ceilings ceilings{.processor = json.at("processor"),
                    .cores = json.at("cores"),
                    .fp32_flops_per_s = json.at("fp32_flops_per_s"),
                    .bf16_flops_per_s = json.at("bf16_flops_per_s"),
                    .memory_bytes_per_s = json.at("memory_bytes_per_s"),
                    .seconds = json.value("seconds", 0.0)};
  ceilings.link_bytes_per_s = links_in(json);
  const Json devices = devices_in(json);
  if (!gpu.empty() && devices.contains(gpu)) ceilings.device = device_from(devices.at(gpu));
  return ceilings;
}

// By processor. A file of the first schema holds one machine and no list.
Json machines_in(const std::filesystem::path& file) {
  const Json json = core::read_shallow_json(file, 1 << 20);
  if (json.contains("machines")) return json.at("machines");
  return {{json.at("processor").get<std::string>(), json}};
}

}  // namespace

namespace {

void make_folder_of(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw core::WriteError(file.parent_path().string() + ": cannot be made: " + error.message() +
                               ". XDG_CACHE_HOME names another folder for what is measured",
                           error.message());
}

// For as long as the file is read and replaced. Beside it, because it is another file afterwards;
// it stays, because others may wait for it. Where there are no locks the last one has its way.
core::UniqueFd lock_beside(const std::filesystem::path& file) {
  std::error_code ignored;  // who writes the file says why it cannot be
  std::filesystem::create_directories(file.parent_path(), ignored);
  const std::string name = file.string() + ".lock";
  core::UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  while (fd && ::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return fd;
}

// Under the lock.
void replace_entries(const Ceilings& ceilings, const std::filesystem::path& file) {
  make_folder_of(file);
  Json machines = Json::object();
  try {
    machines = machines_in(file);
  } catch (const std::exception&) {
    // nothing there, or nothing that could be read: begin anew
  }
  Json& machine = machines[ceilings.processor];
  Json devices = machine.is_object() ? devices_in(machine) : Json::object();
  if (ceilings.device) devices[ceilings.device->name] = to_json(*ceilings.device);
  machine = to_json(ceilings);
  machine["devices"] = std::move(devices);
  core::write_file_atomically(file,
                              Json{{"schema", kSchema}, {"machines", machines}}.dump(2) + "\n");
}

}  // namespace

void save_ceilings(const Ceilings& ceilings, const std::filesystem::path& file) {
  const core::UniqueFd lock = lock_beside(file);
  replace_entries(ceilings, file);
}

void update_ceilings(const std::filesystem::path& file, const std::string& gpu,
                     const ChangeOfCeilings& change) {
  const core::UniqueFd lock = lock_beside(file);
  if (const auto changed = change(load_ceilings(file, gpu))) replace_entries(*changed, file);
}

std::optional<Ceilings> load_ceilings(const std::filesystem::path& file, const std::string& gpu) {
  try {
    const Ceilings stored = ceilings_from(machines_in(file).at(processor_name()), gpu);
    if (stored.processor != processor_name() || stored.cores <= 0) return std::nullopt;
    return stored;
  } catch (const std::exception&) {
    return std::nullopt;  // a cache, not an input: a measurement that cannot be read is one that
                          // was not taken
  }
}

}  // namespace sidestream::launch

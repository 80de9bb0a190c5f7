#include "comm/device/socket_interfaces.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "comm/network_interfaces.hpp"

namespace sidestream::comm {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  std::istringstream stream{std::string(list)};
  for (std::string name; std::getline(stream, name, ',');) {
    const std::size_t port = name.find(':');
    names.push_back(name.substr(0, port));
  }
  return names;
}

// A list with its marks, as NCCL reads it.
class Selection {
 public:
  explicit Selection(std::string_view spec) {
    excludes_ = spec.starts_with('^');
    if (excludes_) spec.remove_prefix(1);
    exact_ = spec.starts_with('=');
    if (exact_) spec.remove_prefix(1);
    names_ = split(spec);
  }

  bool accepts(const std::string& interface) const {
    const bool listed = std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return exact_ ? interface == name : interface.starts_with(name);
    });
    return listed != excludes_;
  }

 private:
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  for (const NetworkInterface& interface : network_interfaces()) names.push_back(interface.name);
  return names;
}

std::string socket_interface_problem(const char* spec, std::span<const std::string> interfaces) {
  if (spec == nullptr || *spec == '\0' || interfaces.empty()) return {};
  const Selection selection(spec);
  std::string there;
  for (const std::string& interface : interfaces) {
    if (selection.accepts(interface)) return {};
    there += (there.empty() ? "" : ", ") + interface;
  }
  return std::string("NCCL_SOCKET_IFNAME is '") + spec +
         "', which leaves no network interface of this machine; there are: " + there;
}

}  // namespace sidestream::comm

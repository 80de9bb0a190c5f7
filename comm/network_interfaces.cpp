#include "comm/network_interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace sidestream::comm {
namespace {

constexpr std::size_t kPrefixBytes = 12;  // of an IPv4 address
constexpr std::array<std::uint8_t, kPrefixBytes> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};

struct FreeInterfaces {
  void operator()(ifaddrs* first) const noexcept { ::freeifaddrs(first); }
};

std::optional<HostAddress> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return std::nullopt;
  HostAddress address{};
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto& own = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
    std::copy(kPrefix.begin(), kPrefix.end(), address.begin());
    std::memcpy(address.data() + kPrefixBytes, &own, sizeof(own));
    return address;
  }
  if (entry.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  const auto& own = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&own)) return std::nullopt;
  std::memcpy(address.data(), &own, sizeof(own));
  return address;
}

NetworkInterface& named(std::vector<NetworkInterface>& interfaces, const char* name) {
  const auto known = std::find_if(interfaces.begin(), interfaces.end(),
                                  [name](const auto& interface) { return interface.name == name; });
  if (known != interfaces.end()) return *known;
  return interfaces.emplace_back(NetworkInterface{.name = name});
}

}  // namespace

std::vector<NetworkInterface> network_interfaces() {
  std::vector<NetworkInterface> interfaces;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, FreeInterfaces> owner(first);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    NetworkInterface& interface = named(interfaces, entry->ifa_name);
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (const auto address = address_of(*entry)) interface.addresses.push_back(*address);
  }
  return interfaces;
}

std::vector<HostAddress> own_addresses(const std::vector<NetworkInterface>& interfaces) {
  std::vector<HostAddress> addresses, loopback;
  for (const NetworkInterface& interface : interfaces) {
    if (!interface.up) continue;
    auto& kind = interface.loopback ? loopback : addresses;
    kind.insert(kind.end(), interface.addresses.begin(), interface.addresses.end());
  }
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

bool is_ipv4(const HostAddress& address) noexcept {
  return std::equal(kPrefix.begin(), kPrefix.end(), address.begin());
}

}  // namespace sidestream::comm

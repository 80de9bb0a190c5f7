// The network interfaces of this machine, and where it can be reached on them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sidestream::comm {

// An IPv6 address in network order; an IPv4 address as ::ffff:a.b.c.d. Plain bytes.
using HostAddress = std::array<std::uint8_t, 16>;

struct NetworkInterface {
  std::string name = {};
  bool up = false;
  bool loopback = false;
  // Without link-local ones, which mean something else on every machine.
  std::vector<HostAddress> addresses = {};
};

// Each once, in the system's order. Empty where the system does not tell.
std::vector<NetworkInterface> network_interfaces();

// Of those that are up; the loopback's last: it is the same for every machine.
std::vector<HostAddress> own_addresses(const std::vector<NetworkInterface>& interfaces);

bool is_ipv4(const HostAddress& address) noexcept;

}  // namespace sidestream::comm

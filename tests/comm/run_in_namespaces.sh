#!/bin/bash
# Runs a program in two network namespaces that a virtual cable joins: for MPI these are two hosts, so that the path
# between nodes is really used. Needs root and iproute2; removes the namespaces at the end, whatever happens.
#
#   run_in_namespaces.sh <mpirun> <ranks on the first> <ranks on the second> <program> [arguments]
#
# SIDESTREAM_LINK_RATE (1gbit): what the cable carries at most, each way; as fast as it goes when not set.
set -u
mpirun=$1
on_first=$2
on_second=$3
shift 3
first=sidestream-$$-a
second=sidestream-$$-b
agent=$(mktemp /tmp/sidestream-agent.XXXXXX)

clean_up() {
  ip netns del "$first" 2>/dev/null
  ip netns del "$second" 2>/dev/null
  rm -f "$agent"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

add_side() {  # namespace, cable, address
  ip link set "$2" netns "$1" && ip -n "$1" addr add "$3/24" dev "$2" && ip -n "$1" link set "$2" up &&
    ip -n "$1" link set lo up || return
  [ -z "${SIDESTREAM_LINK_RATE:-}" ] ||
    tc -n "$1" qdisc add dev "$2" root tbf rate "$SIDESTREAM_LINK_RATE" burst 128kb latency 50ms
}
cable=ss$$
ip netns add "$first" && ip netns add "$second" && ip link add "${cable}a" type veth peer name "${cable}b" &&
  add_side "$first" "${cable}a" 10.231.0.1 && add_side "$second" "${cable}b" 10.231.0.2 || exit 1

# A host name, a /dev/shm and a boot of its own: Open MPI would mix up the files of two hosts with the same name, and
# hosts with one boot have one clock. What mpirun calls instead of ssh: the first argument is the host, the rest the command.
cat >"$agent" <<SCRIPT
#!/bin/bash
shift
exec ip netns exec $second unshare --uts /bin/sh -c "hostname sidestream-b && mount -t tmpfs tmpfs /dev/shm &&
  cat /proc/sys/kernel/random/uuid > /dev/shm/boot_id && mount --bind /dev/shm/boot_id /proc/sys/kernel/random/boot_id && \$*"
SCRIPT
chmod +x "$agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ip netns exec "$first" "$mpirun" -np $((on_first + on_second)) \
  --host "10.231.0.1:$on_first,10.231.0.2:$on_second" --bind-to none \
  --mca plm_rsh_agent "$agent" --mca btl tcp,vader,self --mca pml ob1 \
  --mca btl_tcp_if_include 10.231.0.0/24 --mca oob_tcp_if_include 10.231.0.0/24 "$@"

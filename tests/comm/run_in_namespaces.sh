#!/bin/bash
# Runs a program in network namespaces that virtual cables join: for MPI these are so many hosts, so that the path
# between nodes is really used. Two hosts share a cable, more of them a switch. Needs root and iproute2; removes the
# namespaces at the end, whatever happens.
#
#   run_in_namespaces.sh <mpirun> <ranks on the first> <ranks on the second> [<on the third> ...] <program> [arguments]
#
# SIDESTREAM_LINK_RATE (1gbit): what a cable carries at most, each way; as fast as it goes when not set.
# SIDESTREAM_LINK_SILENT_WHEN (sleep 3): a command; when it has ended nothing of the second host arrives at the first any
# more, as if the cable were cut far away: no error, no end of a connection.
# SIDESTREAM_LINK_SILENT_FOR (8): seconds of silence after which all is ended; mpirun itself would wait for ever.
set -u
mpirun=$1
shift
ranks=()
while [[ ${1:-} =~ ^[0-9]+$ ]]; do
  ranks+=("$1")
  shift
done
hosts=${#ranks[@]}
name=sidestream-$$
cable=ss$$
agent=$(mktemp /tmp/sidestream-agent.XXXXXX)

launched= cutter=
clean_up() {
  [ -z "$launched" ] || kill -KILL "$launched" 2>/dev/null
  [ -z "$cutter" ] || { kill -KILL -- -"$cutter"; wait "$cutter"; } 2>/dev/null
  for ((host = 0; host < hosts; ++host)); do
    # Those that wait for a host that does not answer, for ever.
    ip netns pids "$name-$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
  done
  for ((host = 0; host < hosts; ++host)); do
    ip netns del "$name-$host" 2>/dev/null
    rm -rf "/etc/netns/$name-$host"
  done
  ip netns del "$name-switch" 2>/dev/null
  rm -f "$agent"
}
trap clean_up EXIT
trap 'exit 130' INT TERM  # ends what was started, too

shape() {  # namespace, end of a cable
  [ -z "${SIDESTREAM_LINK_RATE:-}" ] ||
    tc -n "$1" qdisc add dev "$2" root tbf rate "$SIDESTREAM_LINK_RATE" burst 128kb latency 50ms
}
add_host() {  # number, its end of a cable
  ip link set "$2" netns "$name-$1" && ip -n "$name-$1" addr add "10.231.0.$(($1 + 1))/24" dev "$2" &&
    ip -n "$name-$1" link set "$2" up && ip -n "$name-$1" link set lo up && shape "$name-$1" "$2"
}
join_two() {
  ip link add "${cable}a" type veth peer name "${cable}b" && add_host 0 "${cable}a" && add_host 1 "${cable}b"
}
join_by_switch() {
  ip netns add "$name-switch" && ip -n "$name-switch" link add bridge type bridge &&
    ip -n "$name-switch" link set bridge up || return
  for ((host = 0; host < hosts; ++host)); do
    ip link add "$cable$host" type veth peer name "${cable}s$host" && add_host "$host" "$cable$host" &&
      ip link set "${cable}s$host" netns "$name-switch" && ip -n "$name-switch" link set "${cable}s$host" master bridge up &&
      shape "$name-switch" "${cable}s$host" || return
  done
}
known='127.0.0.1 localhost'  # what /etc/hosts is in there
for ((host = 0; host < hosts; ++host)); do known+=$'\n'"10.231.0.$((host + 1)) sidestream-$host"; done
for ((host = 0; host < hosts; ++host)); do
  ip netns add "$name-$host" && mkdir -p "/etc/netns/$name-$host" && echo "$known" >"/etc/netns/$name-$host/hosts" || exit 1
done
if [ "$hosts" -eq 2 ]; then join_two; else join_by_switch; fi || exit 1

# A host name, a /dev/shm and a boot of its own: Open MPI would mix up the files of two hosts with the same name, and
# hosts with one boot have one clock. What mpirun calls instead of ssh: the first argument is the host, the rest the command.
cat >"$agent" <<SCRIPT
#!/bin/bash
host=\$((\${1##*.} - 1))
shift
exec ip netns exec "$name-\$host" unshare --uts /bin/sh -c "hostname sidestream-\$host && mount -t tmpfs tmpfs /dev/shm &&
  cat /proc/sys/kernel/random/uuid > /dev/shm/boot_id && mount --bind /dev/shm/boot_id /proc/sys/kernel/random/boot_id && \$*"
SCRIPT
chmod +x "$agent"

if [ -n "${SIDESTREAM_LINK_SILENT_WHEN:-}" ]; then
  set -m  # a process group, which can be ended with what it waits for
  { eval "$SIDESTREAM_LINK_SILENT_WHEN"
    ip -n "$name-1" neigh replace 10.231.0.1 lladdr 02:00:00:00:00:01 dev "${cable}b" nud permanent
    sleep "${SIDESTREAM_LINK_SILENT_FOR:-infinity}"
    kill -TERM $$; } &
  cutter=$!
  set +m
fi

places=() total=0
for ((host = 0; host < hosts; ++host)); do
  places+=("10.231.0.$((host + 1)):${ranks[host]}")
  total=$((total + ranks[host]))
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# In a session of its own: Open MPI ends ranks by their process group, which for one that has only just been forked is
# the group of mpirun, and with it this script.
setsid ip netns exec "$name-0" "$mpirun" -np "$total" --host "$(IFS=,; echo "${places[*]}")" --bind-to none \
  --mca plm_rsh_agent "$agent" --mca btl tcp,vader,self --mca pml ob1 \
  --mca btl_tcp_if_include 10.231.0.0/24 --mca oob_tcp_if_include 10.231.0.0/24 "$@" &
launched=$!
wait "$launched"
code=$?
launched=
exit "$code"

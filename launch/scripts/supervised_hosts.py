"""The hosts of a supervised run: where their names come from, which of them a message blames, and which are used."""
import os
import pathlib
import re
import socket
import subprocess
import tempfile

from script import Script

script = Script("supervise")
say, fail = script.say, script.fail
FAILURES_OF_A_BAD_HOST = 2
# How the host of a failed rank stands in messages of Sidestream ("missing: rank 3 on node7 (", "rank 3 on node7 has died", "[rank 3 on
# node7]: ... itself hangs"), of mpirun and of ssh.
BLAMED = re.compile(r"(?:missing: |: |, )(?:local )?rank \d+ on ([\w.-]+?)(?: \(| has died)|\[rank \d+ on ([\w.-]+)\]"
                    r"|on node ([\w.-]+) exited on signal|Remote daemon: .* on node ([\w.-]+)"
                    r"|ssh: (?:connect to host|Could not resolve hostname) ([\w.-]+?)(?: port|:)")


def hosts_of_list(text):
    """[(name, slots)] of "a:8,b"; mpirun takes a host without a number for one slot."""
    hosts = []
    for entry in text.split(","):
        match = re.match(r"([\w.-]+)(?::(\d+))?$", entry.strip())
        if not match:
            fail(f"--hosts: expected NAME or NAME:SLOTS, found '{entry}'")
        hosts.append((match.group(1), int(match.group(2) or 1)))
    return hosts


def cores_of_this_host():
    """Without their hardware threads, as mpirun counts them."""
    siblings = pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return len({file.read_text() for file in siblings}) or os.cpu_count()


class HostFile:
    """A host file as mpirun reads it: it is handed on as it is, and only a host that is to be left out makes another of its lines."""

    def __init__(self, file):
        try:  # comments may be of any encoding, and are handed on as they are
            text = pathlib.Path(file).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            fail(f"--hostfile: cannot read '{file}': {error.strerror}")
        self.file, self.lines, self.slots, self.given, self.reduced = file, {}, {}, set(), None
        for line in text.splitlines():
            words = line.split("#")[0].strip()
            if words:
                self.add(line, words)

    def add(self, line, words):
        match = re.match(r"(?:[^\s@]+@)?([\w.-]+)(?:\s.*?\bslots\s*=\s*(\d+))?", words)
        if not match:
            fail(f"--hostfile: expected NAME or NAME slots=N, found '{line}'")
        name, slots = match.groups()
        self.lines.setdefault(name, []).append(line)
        self.slots[name] = self.slots.get(name, 0) + int(slots or 1)
        if slots or len(self.lines[name]) > 1:
            self.given.add(name)

    def hosts(self):
        """[(name, slots)]; mpirun takes each line without a number for one more slot ($PBS_NODEFILE), but counts the cores of a host that
        has no other line: here it is taken to be like this one."""
        return [(name, slots if name in self.given else cores_of_this_host()) for name, slots in self.slots.items()]

    def with_only(self, chosen):
        """A file of these hosts' lines, as they were; it goes with this object."""
        self.reduced = tempfile.NamedTemporaryFile("w", prefix="sidestream-hosts-", encoding="utf-8", errors="surrogateescape")
        self.reduced.write("".join(line + "\n" for name, _ in chosen for line in self.lines[name]))
        self.reduced.flush()
        return self.reduced.name


def output_of(command):
    """What it printed, stripped; None, with a message, when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        return None
    if done.returncode != 0:
        say(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
        return None
    return done.stdout.strip()


def hosts_of_slurm(environment):
    """[(name, slots)] of the allocation; None outside of one."""
    nodes = environment.get("SLURM_JOB_NODELIST")
    names = output_of(["scontrol", "show", "hostnames", nodes]) if nodes else None
    if not names:
        return None
    slots = []  # "8(x2),4": two nodes with eight, one with four
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", environment.get("SLURM_TASKS_PER_NODE", "1")):
        slots += [int(count)] * int(times or 1)
    names = names.split()
    return list(zip(names, slots + [slots[-1]] * (len(names) - len(slots))))


def hostfile_of_job(environment):
    """What PBS or LSF gives a job of several hosts, as launch/run takes it; None elsewhere."""
    for file in (environment.get(name) for name in ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")):
        if file and "SLURM_JOB_NODELIST" not in environment and os.access(file, os.R_OK):
            given = HostFile(file)
            if len(given.slots) > 1:
                return given
    return None


def pick_hosts(hosts, failures, ranks):
    """Enough hosts for the ranks, those that failed often only when there is no other choice."""
    good = [host for host in hosts if failures.get(host[0], 0) < FAILURES_OF_A_BAD_HOST]
    bad = sorted((host for host in hosts if host not in good), key=lambda host: failures[host[0]])
    chosen, room = [], 0
    for host in good + bad:
        if room >= ranks:
            break
        chosen.append(host)
        room += host[1]
    return chosen


def hosts_blamed(line):
    return [next(name for name in match.groups() if name) for match in BLAMED.finditer(line)]


def address_of(name):
    try:
        return socket.gethostbyname(name)
    except OSError:
        return None


def known_host(name, hosts):
    """The host of the list that is meant: messages may shorten a name that was given with its domain, or give an address its name."""
    names = [host for host, _ in hosts or []]
    alike = [host for host in names if host == name]
    alike = alike or [host for host in names if host.split(".")[0] == name.split(".")[0] and not host[0].isdigit()]
    address = address_of(name) if names and not alike else None
    return next(iter(alike or [host for host in names if address and address_of(host) == address]), name)

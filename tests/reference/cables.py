"""Hosts that shaped cables join: network namespaces of this machine, by tests/comm/run_in_namespaces.sh. Needs root."""
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "comm/run_in_namespaces.sh"
RENDEZVOUS = "tcp://10.231.0.1:29517"  # on the first host
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bytes_per_s(rate):
    """Of a rate as tc writes it: 1gbit. Headers of packets count."""
    return float(rate[:-4]) * UNITS[rate[-4:]] / 8


def mpirun_on_hosts(ranks, words):
    """The command that runs words on so many ranks on each host; environment(rate) is what it needs."""
    return [str(word) for word in ["bash", SCRIPT, shutil.which("mpirun"), *ranks, *words]]


def environment(rate):
    return {"SIDESTREAM_LINK_RATE": rate}


def run_on_hosts(ranks, rate, words):
    """Standard output of mpirun over so many ranks on each host. Ends the program when that fails."""
    done = subprocess.run(mpirun_on_hosts(ranks, words), env=os.environ | environment(rate), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def own_interface():
    """The name of this host's end of its cable, which Gloo wants to know."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _, name in socket.if_nameindex():
        try:
            address = fcntl.ioctl(probe, 0x8915, struct.pack("256s", name.encode()))[20:24]  # SIOCGIFADDR
        except OSError:
            continue
        if socket.inet_ntoa(address).startswith("10.231."):
            return name
    sys.exit("no cable of run_in_namespaces.sh ends here")

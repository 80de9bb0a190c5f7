"""Which hosts a message blames, and which ones the next start gets."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "launch/scripts"))
from supervised_hosts import hosts_blamed, pick_hosts  # noqa: E402


class SupervisedHostsTest(unittest.TestCase):
    def test_hosts_of_failures_are_seen(self):
        lines = ["sidestream [rank 0]: all_reduce (operation 3): not finished after 600 ms; missing: rank 1 on node7 (last started)",
                 "sidestream [rank 0]: barrier: rank 2 on node8.lan has died: its process is gone",
                 "mpirun noticed that process rank 3 with PID 0 on node node9 exited on signal 9 (Killed).",
                 "sidestream [rank 2]: starting MPI: not finished after 9 ms; missing: local rank 1 on node10 (has not come to it).",
                 "ssh: connect to host node11 port 22: No route to host",
                 "ssh: Could not resolve hostname node12.lan: Name or service not known",
                 "  Remote daemon: [[41413,0],1] on node node13",
                 "sidestream [rank 1 on node14]: step 5, data: not finished after 3000 ms, this rank itself hangs."]
        found = [name for line in lines for name in hosts_blamed(line)]
        self.assertEqual(found, ["node7", "node8.lan", "node9", "node10", "node11", "node12.lan", "node13", "node14"])

    def test_bad_hosts_are_left_out_while_there_are_spares(self):
        hosts = [("a", 2), ("b", 2), ("c", 2)]
        self.assertEqual(pick_hosts(hosts, {}, 4), [("a", 2), ("b", 2)])
        self.assertEqual(pick_hosts(hosts, {"a": 1}, 4), [("a", 2), ("b", 2)])
        self.assertEqual(pick_hosts(hosts, {"a": 2}, 4), [("b", 2), ("c", 2)])
        self.assertEqual(pick_hosts(hosts, {"a": 2, "b": 3}, 4), [("c", 2), ("a", 2)])


if __name__ == "__main__":
    unittest.main()

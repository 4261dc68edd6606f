"""A Ray cluster of several nodes on this machine, each with processes of its own, that bulk runs can join.

python tests/bulk_cluster.py NODES     prints the address; ends with its input. The head has no core, nodes one each.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path


class Nodes:
    """A cluster for the length of a block; folder: that its processes are in."""

    def __init__(self, count, *, environment=None, folder=None):
        self.count, self.environment, self.folder = count, environment or {}, folder

    def __enter__(self):
        source = Path(__file__).parent.parent / "src"
        own = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(self.count)],
            env=os.environ | own | self.environment,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.address = self._answer()
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=60)

    def kill(self, pid):
        """Kill the node that a process is of, as a power cut does, and add another one."""
        node = parent(pid)
        assert b"raylet" in words_of(node), words_of(node)
        os.kill(node, signal.SIGKILL)
        print("add", file=self.process.stdin, flush=True)
        self._answer()

    def _answer(self):
        """Read the line that is meant for us; Ray may print others."""
        while line := self.process.stdout.readline():
            if line.startswith("> "):
                return line[2:].strip()
        raise RuntimeError("the cluster did not start")


def parent(pid):
    return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


def words_of(pid):
    return (Path("/proc") / str(pid) / "cmdline").read_bytes()


def descends(pid, ancestor):
    """Whether a process was started by another, or by one that it started."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = parent(pid)
        except OSError:
            return False
    return False


def actors(ancestor):
    """Find the processes of the pool's workers below a driver or a cluster."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"MapWorker" in words_of(int(entry.name)) and descends(int(entry.name), ancestor):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def main():
    from ray.cluster_utils import Cluster

    room = {"object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **room})
    for _ in range(int(sys.argv[1])):
        cluster.add_node(num_cpus=1, **room)
    print(">", cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.add_node(num_cpus=1, **room)
        print("> added", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()

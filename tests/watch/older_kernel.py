"""Watches a command as on a kernel before 6.5, which tells the submitter of a bio and not of a request.

Run by the system's Python: older_kernel.py MAJ:MIN COMMAND [ARGUMENT...]; prints the profile as JSON.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

from block_profile import summarise_run  # noqa: E402
from cgroup import RunCgroup, find_hierarchy  # noqa: E402
from counters import Counters  # noqa: E402
from disk import find_disk  # noqa: E402
from kernel import read_kernel  # noqa: E402
from needs import BLOCK_NEEDS  # noqa: E402

_GATE = "import os, sys; sys.stdin.readline(); os.execvp(sys.argv[1], sys.argv[1:])"


def main() -> None:
    """Follow the command from its first request on."""
    device, *command = sys.argv[1:]
    kernel = read_kernel(BLOCK_NEEDS, tracepoints_to_ignore=frozenset({"block_io_start"}))
    counters = Counters(kernel, find_disk(device), 4096, "device")
    with subprocess.Popen([sys.executable, "-c", _GATE, *command], stdin=subprocess.PIPE) as process:
        cgroup = RunCgroup(find_hierarchy(), counters.follow)
        cgroup.add_trees([process.pid], None)
        counters.start(cgroup.directories)
        process.communicate(b"\n")
    profile = summarise_run(counters.stop(), [], "device")
    cgroup.release()
    counters.close()
    print(json.dumps(profile))


if __name__ == "__main__":
    main()

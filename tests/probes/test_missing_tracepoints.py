"""Kernels that lack a tracepoint, made out of this one: numbers that hang on it are None, the rest still counts."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.long]

PROBES = Path(__file__).parents[2] / "probes"
#: Loads a probe as if tracepoints were missing, maps and writes a file, prints the profile of its own cgroup.
SCRIPT = """
import json, mmap, os, sys
sys.dont_write_bytecode = True
sys.path.append(sys.argv[1])
import faults, kernel, syscalls
from cgroup import find_hierarchy
from probe import Selection
module, name, file, *missing = sys.argv[2:]
module = {"faults": faults, "syscalls": syscalls}[module]
module.read_kernel = lambda needs: kernel.read_kernel(needs, frozenset(missing))
try:
    probe = getattr(module, name)(Selection())
except kernel.UnavailableError as reason:
    sys.exit(str(reason))
group = next(line[3:].strip("/\\n") for line in open("/proc/self/cgroup") if line.startswith("0::"))
f = os.open(file, os.O_RDWR)
os.fsync(f)  # only a clean page is dirtied
probe.start([find_hierarchy() / group])
with mmap.mmap(f, 0) as m:
    m[5000] = 1
os.pwrite(f, b"x", 0)
probe.pause()
profile = probe.stop()
probe.close()
print(json.dumps(profile))
"""


def load(python: str, module: str, name: str, file: Path, *missing: str) -> "subprocess.CompletedProcess[str]":
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    file.write_bytes(bytes(16384))
    command = [python, "-c", SCRIPT, str(PROBES), module, name, str(file), *missing]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("mm_filemap_fault", {"faults", "pages_in", "bytes_in", "pattern"}),
        ("mm_filemap_add_to_page_cache", {"pages_in", "bytes_in"}),
        ("block_bio_queue", {"pages_written_back"}),
    ],
)
def test_faults(system_python: str, open_directory: Path, missing: str, unknown: set[str]) -> None:
    done = load(system_python, "faults", "FaultProbe", open_directory / "file", missing)
    assert done.returncode == 0, done.stderr
    row = next(row for row in json.loads(done.stdout)["faults"] if row["name"] == "file")
    keys = ("faults", "pages_in", "bytes_in", "pages_dirtied", "pages_written_back", "pattern")
    assert {key for key in keys if row[key] is None} == unknown
    assert 1 <= row["pages_dirtied"] <= 4  # whole folios


def test_faults_without_both(system_python: str, open_directory: Path) -> None:
    missing = ("mm_filemap_fault", "writeback_dirty_folio")
    done = load(system_python, "faults", "FaultProbe", open_directory / "file", *missing)
    assert done.returncode == 1
    assert "neither" in done.stderr


@pytest.mark.parametrize(("missing", "mode"), [("mm_filemap_fault", "mmap"), ("io_uring_submit_req", "io_uring")])
def test_syscalls(system_python: str, open_directory: Path, missing: str, mode: str) -> None:
    done = load(system_python, "syscalls", "SyscallProbe", open_directory / "file", missing)
    assert done.returncode == 0, done.stderr
    profile: dict[str, Any] = json.loads(done.stdout)
    assert {row["mode"] for row in profile["io_modes"] if row["calls"] is None} == {mode}
    written = [row["calls"] for row in profile["file_access"] if (row["name"], row["op"]) == ("file", "write")]
    assert written == [1]

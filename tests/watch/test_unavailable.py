"""Machines that forbid something, and devices that go away: a clear message, an exit code, no hanging, nothing left."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cgroups import find_cgroup2, find_cgroups
from loop_devices import Loop, open_loop, row_of, run

pytestmark = pytest.mark.real

_TIMEOUT_S = 300
_CTL_ADD, _CTL_REMOVE = 0x4C80, 0x4C81  # LOOP_CTL_ADD, LOOP_CTL_REMOVE
#: Mounts one thing or unmounts it, in a mount namespace of its own, and becomes the command.
MOUNT_AND_RUN = """
import os, subprocess, sys
end = sys.argv.index("--")
subprocess.run(sys.argv[1:end], check=True)
os.execvp(sys.argv[end + 1], sys.argv[end + 1:])
"""
#: What `knobscope` is, run by an ordinary user.
AS_NOBODY = """
import os, pwd, sys
from knobscope.cli import build_parser, main
from knobscope.durable_files import write_json
build_parser()  # imports what may not be his to read
sys.executable = "/usr/bin/python3"
os.setgroups([])
os.setuid(pwd.getpwnam("nobody").pw_uid)
sys.exit(main(sys.argv[1:]))
"""
KNOBSCOPE = [sys.executable, "-m", "knobscope"]
WRITE = ["dd", "if=/dev/zero", "bs=8k", "count=53", "oflag=direct", "status=none"]


@dataclass(frozen=True)
class Outcome:
    """What `knobscope watch` said and left behind."""

    code: int
    messages: str
    profile: Any  # None when there is none
    left: list[str]


@pytest.fixture
def json_file(tmp_path: Path) -> Path:
    return tmp_path / "profile.json"


def watch(
    json_file: Path, device: str, *command: str, by: list[str] = KNOBSCOPE, options: tuple[str, ...] = ()
) -> Outcome:
    """Run `knobscope watch` in a session of its own, so that what it leaves can be found."""
    before = list_abandoned_cgroups()
    arguments = [*by, "watch", "--device", device, "--json", str(json_file), "--no-sync", *options, "--", *command]
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    _, messages = process.communicate(timeout=_TIMEOUT_S)
    left = [*list_session(process.pid), *(list_abandoned_cgroups() - before)]
    profile = json.loads(json_file.read_text()) if json_file.exists() else None
    return Outcome(process.returncode, messages.decode(), profile, left)


def list_session(session: int) -> list[str]:
    """The processes of a session: field 6 of /proc/PID/stat."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(session):
            try:
                name, _, rest = (entry / "stat").read_text().rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if rest.split()[3] == str(session):
                found.append(name)
    return found


def list_abandoned_cgroups() -> set[str]:
    """Directories of monitors that are no more; other monitors may run beside this test."""
    return {
        str(path) for path in find_cgroups("knobscope-[0-9]*-*") if not Path("/proc", path.name.split("-")[1]).exists()
    }


def in_namespace(*change: str) -> list[str]:
    """Run knobscope where the mounts have been changed by one command."""
    return ["unshare", "--mount", sys.executable, "-c", MOUNT_AND_RUN, *change, "--", *KNOBSCOPE]


WITHOUT_BPF = ["setpriv", "--bounding-set", "-bpf,-sys_admin,-perfmon", "--inh-caps", "-bpf,-sys_admin,-perfmon"]
HINDRANCES = {
    "no-capabilities": ([*WITHOUT_BPF, *KNOBSCOPE], "BPF"),
    "no-root": ([sys.executable, "-c", AS_NOBODY], "root"),
    "read-only-cgroups": (in_namespace("mount", "-o", "remount,bind,ro", find_cgroup2()), "is read-only"),
    "no-cgroups": (in_namespace("umount", find_cgroup2()), "no cgroup v2 hierarchy is mounted"),
    "no-type-information": (in_namespace("mount", "-t", "tmpfs", "none", "/sys/kernel/btf"), "no /sys/kernel/btf"),
}


@pytest.mark.parametrize("hindrance", HINDRANCES)
def test_totals_replace_what_is_not_permitted(loop: Loop, open_directory: Path, hindrance: str) -> None:
    if "cgroups" in hindrance and not find_cgroup2():
        pytest.skip("this machine has no cgroup v2")
    open_directory.chmod(0o777)
    by, reason = HINDRANCES[hindrance]
    outcome = watch(open_directory / "profile.json", loop.block.name, "sh", "-c", "exit 7", by=by)
    assert outcome.code == 7, outcome.messages
    assert outcome.messages.count("block-level facts are not available") == 1
    assert reason in outcome.messages
    assert "Traceback" not in outcome.messages
    assert outcome.profile["monitor"] == "procfs"
    assert row_of(outcome.profile, "write")["own_requests"] is None
    assert outcome.left == []


def test_waits_are_not_watched_where_processes_have_other_numbers(loop: Loop, json_file: Path) -> None:
    """A thread of the host may have the number that one of the server has here."""
    by = ["unshare", "--pid", "--fork", "--mount-proc", *KNOBSCOPE]
    outcome = watch(json_file, loop.node, *WRITE, f"of={loop.node}", by=by, options=("--with", "waits"))
    assert (outcome.code, outcome.left) == (0, [])
    assert "waits cannot be watched" in outcome.messages
    assert "--pid=host" in outcome.messages
    assert "waits" not in outcome.profile
    assert row_of(outcome.profile, "write")["requests"] == 53


def test_tracefs_is_not_needed(loop: Loop, json_file: Path) -> None:
    """Raw tracepoints are asked of the kernel directly: its file system may be read-only or absent."""
    by = in_namespace("mount", "-t", "tracefs", "-o", "ro", "none", "/sys/kernel/tracing")
    outcome = watch(json_file, loop.node, *WRITE, f"of={loop.node}", by=by)
    assert outcome.code == 0, outcome.messages
    assert outcome.profile["monitor"] == "bpf"
    assert row_of(outcome.profile, "write")["own_requests"] == 53


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[str]:
    """A loop device with a medium, that a test may take away; its number is given back at the end."""
    image = tmp_path / "spare"
    image.touch()
    os.truncate(image, 32 << 20)
    control = os.open("/dev/loop-control", os.O_RDWR)
    number = fcntl.ioctl(control, _CTL_ADD, 1000 + os.getpid() % 1000)
    node = f"/dev/loop{number}"
    run("losetup", "--direct-io=on", node, image)
    yield node
    subprocess.run(["losetup", "--detach", node], capture_output=True, check=False)
    if Path("/sys/block", f"loop{number}").exists():
        fcntl.ioctl(control, _CTL_REMOVE, number)
    os.close(control)


TAKE_AWAY = """
import fcntl, os, subprocess, sys, time
node, how = sys.argv[1:]
device = os.open(node, os.O_RDONLY)
subprocess.run(["losetup", "--detach", node], check=True)  # lazily: we have it open
os.pread(device, 4096, 0)
os.close(device)
if how == "removed":
    fcntl.ioctl(os.open("/dev/loop-control", os.O_RDWR), 0x4C81, int(node.removeprefix("/dev/loop")))
time.sleep(0.5)
"""


@pytest.mark.parametrize("how", ["detached", "removed"])
def test_a_device_that_goes_away_during_the_run(spare: str, json_file: Path, how: str) -> None:
    outcome = watch(json_file, spare, sys.executable, "-c", TAKE_AWAY, spare, how)
    assert outcome.code == 2
    assert "is gone or has another medium" in outcome.messages
    assert "Traceback" not in outcome.messages
    assert outcome.profile is None
    assert outcome.left == []


def test_a_backing_file_that_is_deleted_changes_nothing(tmp_path: Path, json_file: Path) -> None:
    with open_loop(tmp_path / "image", 16) as loop:
        script = 'rm "$0" && "$@"; touch "$0"'
        outcome = watch(json_file, loop.node, "sh", "-c", script, str(tmp_path / "image"), *WRITE, f"of={loop.node}")
    assert outcome.code == 0
    assert row_of(outcome.profile, "write")["own_requests"] == 53
    assert outcome.profile["failed_requests"] == 0


def test_requests_that_fail_are_counted(tmp_path: Path, json_file: Path) -> None:
    """The medium below the device is gone, the device itself is not: the command sees errors, and so do we."""
    with open_loop(tmp_path / "image", 16) as loop:
        os.truncate(tmp_path / "image", 8 << 20)
        read = ["dd", f"if={loop.node}", "of=/dev/null", "bs=4k", "skip=3000", "count=1", "iflag=direct", "status=none"]
        outcome = watch(json_file, loop.node, *read)
    assert outcome.code == 1
    assert row_of(outcome.profile, "read")["own_requests"] == outcome.profile["failed_requests"] == 1
    assert outcome.left == []

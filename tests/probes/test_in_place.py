"""The monitor watches processes and cgroups where they are: whose they are, by which paths, what a kill leaves."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cgroup import find_hierarchy
from cgroups import empty_cgroup
from loop_devices import open_loop
from reused_numbers import start_as
from test_protocol import MONITOR
from waiting import wait_until

pytestmark = pytest.mark.real

_WRITES = 101
#: Waits for a line, then lets a child write directly, and waits for its end.
_WRITER = f"""
import mmap, os, sys
sys.stdin.readline()
if os.fork() == 0:
    file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    for i in range({_WRITES}):
        os.pwrite(file, page, 4096 * i)
    os._exit(0)
os.wait()
print("done", flush=True)
sys.stdin.readline()
"""


class Talk:
    """A monitor that is asked line by line."""

    def __init__(self, python: str, number: str, **environment: str) -> None:
        command = [python, "-I", str(MONITOR), "--device", number, "--unit", "4096", "--scope", "process"]
        usual = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**usual, **environment}
        )
        assert self._read()["event"] == "ready"

    def ask(self, command: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))


@pytest.fixture
def talk(system_python: str, device: str) -> Iterator[Talk]:
    with _closing(Talk(system_python, device)) as opened:
        yield opened


@contextlib.contextmanager
def _closing(talk: Talk) -> Iterator[Talk]:
    try:
        yield talk
    finally:
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        talk.process.wait(60)


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup with one below it."""
    outer = find_hierarchy() / f"in-place-{os.getpid()}"
    inner = outer / "a b"  # names may have blanks
    inner.mkdir(parents=True)
    yield inner
    empty_cgroup(outer)
    inner.rmdir()
    outer.rmdir()


@contextlib.contextmanager
def sleeper(group: Path | None = None, user: str | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "600"], user=user)
    try:
        if group is not None:
            (group / "cgroup.procs").write_text(str(process.pid))
        yield process
    finally:
        process.kill()
        process.wait()


def read_cgroup(pid: int) -> str:
    return Path("/proc", str(pid), "cgroup").read_text().splitlines()[-1]


@pytest.mark.parametrize("path", ["/nowhere", "/../x", "/.", "relative", "//", "/a/../b", ""])
def test_no_path_leads_out_of_the_hierarchy(talk: Talk, path: str) -> None:
    assert talk.ask(f"watch {path}")["event"] == "error"


def test_a_cgroup_with_blanks_in_its_name_is_watched_and_left_as_it_is(talk: Talk, group: Path) -> None:
    with sleeper(group) as process:
        before = read_cgroup(process.pid)
        assert talk.ask(f"watch /{group.relative_to(find_hierarchy())}")["event"] == "watching"
        assert talk.ask("begin")["event"] == "begun"
        assert read_cgroup(process.pid) == before
        profile = talk.ask("end")
        assert profile["event"] == "profile"
        assert profile["cpu_s"] is not None
    assert not list(group.glob("knobscope-*"))


def test_a_user_watches_only_cgroups_of_his_own(system_python: str, device: str, group: Path) -> None:
    name = f"/{group.parent.relative_to(find_hierarchy())}"
    with _closing(Talk(system_python, device, SUDO_UID="65534")) as talk:
        with sleeper(group, "nobody"):
            assert talk.ask(f"watch {name}")["event"] == "watching"
            with sleeper(group):  # root's
                assert "expected processes of user 65534 only" in talk.ask(f"watch {name}")["reason"]
        assert "only" in talk.ask(f"watch {name}")["reason"], "of an empty one nobody knows whose it is"
        with sleeper(group, "nobody"):
            talk.ask(f"watch {name}")
            talk.ask("begin")
            with sleeper(group):
                assert "another user came in" in talk.ask("end")["reason"]
            assert talk.ask(f"watch {name}")["event"] == "watching", "the next run is not affected"
            talk.ask("begin")
        assert talk.ask("end")["event"] == "profile", "of a group that has become empty, too"
        with sleeper() as process:
            assert "does not belong to user 65534" in talk.ask(f"watch {process.pid}")["reason"]


@pytest.mark.parametrize("where", ["process", "cgroup"])
def test_children_that_are_born_meanwhile_count(
    system_python: str, loop_file: tuple[Path, str], group: Path, where: str
) -> None:
    file, number = loop_file
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    with _closing(Talk(system_python, number)) as talk:
        if where == "cgroup":
            (group / "cgroup.procs").write_text(str(writer.pid))
            command = f"watch /{group.relative_to(find_hierarchy())}"
        else:
            command = f"watch {writer.pid}"
        for _ in range(2):  # the second time the first run must be forgotten
            assert talk.ask(command)["event"] == "watching"
            assert talk.ask("begin")["event"] == "begun"
            if _ == 0:
                assert talk.ask("end")["io_profile"][1]["requests"] == 0
        before = read_cgroup(writer.pid)
        writer.stdin.write("go\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "done\n"
        profile = talk.ask("end")
        assert read_cgroup(writer.pid) == before
    writer.communicate("end\n")
    writes = profile["io_profile"][1]
    assert (writes["requests"], writes["own_requests"], writes["device_requests"]) == (_WRITES, _WRITES, _WRITES)
    assert profile["moved_processes"] == 0


@pytest.mark.parametrize("moment", ["before the run", "in the run"])
def test_who_gets_the_number_of_a_process_that_ended_is_not_followed(
    system_python: str, loop_file: tuple[Path, str], moment: str
) -> None:
    file, number = loop_file
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with _closing(Talk(system_python, number)) as talk:
        with sleeper() as process:
            assert talk.ask(f"watch {process.pid}")["event"] == "watching"
            if moment == "in the run":
                assert talk.ask("begin")["event"] == "begun"
        with start_as(process.pid, [sys.executable, "-c", _WRITER, str(file)], **pipes) as stranger:
            if moment == "before the run":
                assert talk.ask("begin")["event"] == "begun"
            stranger.communicate("go\nend\n")
            write = talk.ask("end")["io_profile"][1]
    assert (write["requests"], write["own_requests"], write["device_requests"]) == (0, 0, _WRITES)


@pytest.fixture
def loop_file(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A raw loop device, and its number."""
    with open_loop(tmp_path / "image", 16) as loop:
        yield Path(loop.node), f"{loop.block.major}:{loop.block.minor}"


def test_what_a_killed_monitor_borrowed_goes_back(system_python: str, device: str) -> None:
    with sleeper() as process:
        before = read_cgroup(process.pid)
        talk = Talk(system_python, device)
        assert talk.ask(f"borrow {process.pid}")["event"] == "following"
        assert "knobscope-" in read_cgroup(process.pid)
        os.kill(talk.process.pid, signal.SIGKILL)
        talk.process.wait()
        assert wait_until(lambda: read_cgroup(process.pid) == before), "the warden gives it back"


def test_when_the_warden_is_killed_too_the_next_call_gives_back(
    system_python: str,
    device: str,
    talk: Talk,
    group: Path,
) -> None:
    with sleeper(group) as process:  # where monitors of other tests give nothing back
        before = read_cgroup(process.pid)
        killed = Talk(system_python, device)
        assert killed.ask(f"borrow {process.pid}")["event"] == "following"
        for warden in _list_children(killed.process.pid):
            os.kill(warden, signal.SIGKILL)
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.process.wait()
        assert "knobscope-" in read_cgroup(process.pid)
        assert talk.ask(f"watch {process.pid}")["event"] == "watching"
        assert read_cgroup(process.pid) == before


def _list_children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

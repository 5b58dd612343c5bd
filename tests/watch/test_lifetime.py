"""The monitor's life: it ends with its caller, gives processes back, refuses what it must, and leaves nothing."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cgroups import find_cgroup2, find_cgroups
from loop_devices import Fio, Gated, Loop, row_of, run, watch_jobs
from waiting import PATIENCE_S, wait_until

from knobscope.devices import BlockDevice, find_block_device
from knobscope.watch import WatchFailedError, open_watch
from knobscope.watch.monitor import MonitorUnavailableError, MonitorWatch

pytestmark = pytest.mark.real

CALLER = """
import sys, time
from knobscope.devices import BlockDevice
from knobscope.watch import open_watch
watch = open_watch(BlockDevice(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), 4096, "device")
watch.follow([int(sys.argv[4])])
watch.begin()
print(watch._process.pid, flush=True)
time.sleep(600)
"""


def cgroup_of(pid: int) -> str:
    """The path of a process in the cgroup v2 hierarchy."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


def list_run_cgroups(monitor_pid: int) -> list[Path]:
    """Directories that a monitor made; other monitors may run beside it."""
    return find_cgroups(f"knobscope-{monitor_pid}-*")


@pytest.fixture
def own_group(sleeper: subprocess.Popen[bytes]) -> Iterator[Path]:
    """A cgroup of the process's own: monitors of other tests tidy up what killed ones have left beside theirs."""
    group = Path(find_cgroup2()) / f"lifetime-{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(sleeper.pid))
    yield group
    sleeper.kill()
    sleeper.wait()
    group.rmdir()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def watch(loop: Loop) -> Iterator[MonitorWatch]:
    with MonitorWatch(loop.block, 4096, "device") as opened:
        yield opened


def test_processes_come_back_to_their_cgroup(watch: MonitorWatch, sleeper: subprocess.Popen[bytes]) -> None:
    before = cgroup_of(sleeper.pid)
    watch.follow([sleeper.pid])
    assert Path(cgroup_of(sleeper.pid)).name.startswith(f"knobscope-{watch._process.pid}-")
    watch.begin()
    watch.end()
    assert cgroup_of(sleeper.pid) == before
    assert list_run_cgroups(watch._process.pid) == []


def test_present_descendants_are_followed(watch: MonitorWatch) -> None:
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())  # type: ignore[union-attr]
        watch.follow([parent.pid])
        assert cgroup_of(child) == cgroup_of(parent.pid) != cgroup_of(os.getpid())
        watch.begin()
        watch.end()
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_monitor_ends_with_its_caller(loop: Loop, sleeper: subprocess.Popen[bytes], how: signal.Signals) -> None:
    before = cgroup_of(sleeper.pid)
    arguments = [loop.block.name, str(loop.block.major), str(loop.block.minor), str(sleeper.pid)]
    with subprocess.Popen([sys.executable, "-c", CALLER, *arguments], stdout=subprocess.PIPE, text=True) as caller:
        monitor = int(caller.stdout.readline())  # type: ignore[union-attr]
        had = list_run_cgroups(monitor)
        caller.send_signal(how)
    assert len(had) == 1
    assert wait_until(lambda: not Path("/proc", str(monitor)).exists())
    assert list_run_cgroups(monitor) == []
    assert sleeper.poll() is None
    assert cgroup_of(sleeper.pid) == before


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGINT, signal.SIGHUP))]
)
def test_monitor_cleans_up_after_a_signal(loop: Loop, sleeper: subprocess.Popen[bytes], how: signal.Signals) -> None:
    with MonitorWatch(loop.block, 4096, "device") as watch:
        watch.follow([sleeper.pid])
        watch._process.send_signal(how)
        assert watch._process.wait(PATIENCE_S) == 128 + how
        assert list_run_cgroups(watch._process.pid) == []
        with pytest.raises(WatchFailedError, match="ended"):
            watch.begin()


def test_a_monitor_that_is_killed_while_it_starts_is_no_reason_to_do_without(loop: Loop) -> None:
    def list_monitors() -> set[str]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return {pid for pid in children if b"monitor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()}

    others = list_monitors()

    def kill_child() -> None:
        assert wait_until(lambda: bool(list_monitors() - others))
        os.kill(int((list_monitors() - others).pop()), signal.SIGKILL)

    killer = threading.Thread(target=kill_child)
    killer.start()
    with pytest.raises(WatchFailedError, match="exit code -9"):
        open_watch(loop.block, 4096, "device")
    killer.join()


@pytest.mark.usefixtures("own_group")
def test_next_monitor_removes_what_a_killed_one_left(loop: Loop, sleeper: subprocess.Popen[bytes]) -> None:
    with MonitorWatch(loop.block, 4096, "device") as killed:
        killed.follow([sleeper.pid])
        killed._process.kill()
    assert len(list_run_cgroups(killed._process.pid)) == 1
    with MonitorWatch(loop.block, 4096, "device") as watch:
        watch.follow([sleeper.pid])
        watch.begin()
        watch.end()
    assert list_run_cgroups(killed._process.pid) == []


def test_a_run_that_was_given_up_does_not_disturb_the_next(watch: MonitorWatch, loop: Loop, direct: Fio) -> None:
    abandoned = Gated(["true"])
    watch.follow([abandoned.pid])
    watch.begin()
    abandoned.run()
    watch.abandon()
    profile = watch_jobs(watch, direct(loop.node, rw="write", bs="4k", size="1m"))
    written = row_of(profile, "write")
    assert written["own_requests"] == 256
    assert written["sequential_requests"] > 250
    assert [(row["requests"], row["pattern"]) for row in profile["files"] if row["op"] == "write"] == [
        (256, "sequential")
    ]
    assert sum(row["requests"] for row in profile["submitters"]) == 256


def test_wrong_order_and_unknown_processes_are_refused(watch: MonitorWatch) -> None:
    with pytest.raises(WatchFailedError, match="no run is being counted"):
        watch.end()
    with pytest.raises(WatchFailedError, match="no process 4194304"):
        watch.follow([4194304])
    with pytest.raises(WatchFailedError, match="expected process numbers"):
        watch.follow([-1])
    with pytest.raises(WatchFailedError, match="Invalid argument"):
        watch.follow([2])  # a kernel thread


def test_device_that_disappears_ends_the_monitor(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with ExitStack() as attached:
        with image.open("w") as file:
            os.truncate(file.fileno(), 16 << 20)
        node = run("losetup", "--find", "--show", image)
        attached.callback(run, "losetup", "--detach", node)
        with MonitorWatch(find_block_device(Path(node)), 4096, "device") as watch:
            attached.close()  # once: from here on the node may be another process's
            assert watch._process.wait(PATIENCE_S) == 3
            with pytest.raises(WatchFailedError, match="is gone or has another medium"):
                watch.begin()


def test_bio_based_device_is_not_observable() -> None:
    devices = [path for path in Path("/sys/block").iterdir() if not (path / "mq").exists()]
    if not devices:
        pytest.skip("this machine has no bio-based device (zram, device-mapper)")
    major, minor = (devices[0] / "dev").read_text().strip().split(":")
    with pytest.raises(MonitorUnavailableError, match="bio-based"):
        MonitorWatch(BlockDevice(devices[0].name, int(major), int(minor)), 4096, "device")

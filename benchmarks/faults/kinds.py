"""The kinds of faults. Each is a context manager: it disturbs, yields words for what it did, and undoes it at the end.

Between the two the disturbed call goes on until it ends by itself or by the fault.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from clock import Clock
from damage import damage_something
from studies import STUDIES, Study, start_call
from world import World

#: Studies for single kinds of faults.
_SPECIAL = ("redis-upgraded", "postgresql-ports")
#: Until a process of the kind that is to be killed must have shown up.
_WAIT_S = 60.0


@dataclass(frozen=True)
class Scene:
    """What a fault gets to see: the place, the call that it disturbs, and its own source of chance."""

    world: World
    study: Study
    call: subprocess.Popen[str]
    chance: random.Random
    clock: Clock | None
    environment: dict[str, str]  # of the next call


Injection = Callable[[Scene], AbstractContextManager[str]]


@dataclass(frozen=True)
class Kind:
    """A kind of fault; `needs_server`: only for DBMSs that have one; `is_survived`: the call should go on."""

    inject: Injection
    needs_server: bool = False
    needs_clock: bool = False
    is_survived: bool = False
    only: tuple[str, ...] = ()  # studies that it can happen to, if not to all
    result: str | None = None  # study whose result is to be expected, if another

    def fits(self, study: str) -> bool:
        """Whether this can happen to the study."""
        if self.only or study in _SPECIAL:
            return study in self.only
        return not self.needs_server or STUDIES[study].server is not None


def _kill(command: str) -> Injection:
    @contextmanager
    def inject(scene: Scene) -> Iterator[str]:
        """Kill a process whose command line begins like this, as soon as there is one."""
        deadline = time.monotonic() + _WAIT_S
        while scene.call.poll() is None and time.monotonic() < deadline:
            matches = {pid: line for pid, line in scene.world.find_processes().items() if re.match(command, line)}
            if matches:
                pid = scene.chance.choice(sorted(matches))
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                yield f"kill -9 of {_shorten(matches[pid])}"
                return
            time.sleep(0.01)
        yield "no process to kill"

    return inject


def _shorten(line: str) -> str:
    return " ".join(Path(word).name if word.startswith("/") else word for word in line.split()[:5])


@contextmanager
def _kill_pipeline(scene: Scene) -> Iterator[str]:
    scene.call.kill()
    yield "kill -9 of snakemake"


@contextmanager
def _cut_power(scene: Scene) -> Iterator[str]:
    scene.world.cut_power()
    scene.call.wait()
    scene.world.unmount_image()
    scene.world.mount_image()
    yield "power cut"


@contextmanager
def _fill_disk(scene: Scene) -> Iterator[str]:
    filler = scene.world.mount / "filler"
    begin = time.monotonic()
    lasting = scene.chance.choice([0.5, 2.0, 1e9])  # seconds
    with filler.open("wb", buffering=0) as file:
        while scene.call.poll() is None and time.monotonic() - begin < lasting:
            try:
                file.write(bytes(1 << 16))
            except OSError:
                time.sleep(0.01)  # what others free is filled, too
    filler.unlink()
    yield f"disk full {'for good' if lasting > 60 else f'for {lasting:g} s'}"


@contextmanager
def _fail_io(scene: Scene) -> Iterator[str]:
    scene.world.limit_device(scene.chance.choice([24, 64, 128]) << 20)
    yield "I/O errors"
    scene.world.unmount_image()  # its loop device goes, and with it the limit
    scene.world.mount_image()


@contextmanager
def _make_read_only(scene: Scene) -> Iterator[str]:
    """Let ext4 find an error: it turns read-only, in the midst of whatever is written."""
    name = Path(scene.world.find_loop()).name
    Path("/sys/fs/ext4", name, "trigger_fs_error").write_text("1")
    yield "file system turned read-only"
    scene.world.unmount_image()
    scene.world.mount_image()


@contextmanager
def _damage_file(scene: Scene) -> Iterator[str]:
    """Damage a file of a study that was interrupted, or of one that ended."""
    if scene.chance.random() < 0.5:
        scene.call.kill()
    scene.call.wait()
    scene.world.await_silence()
    yield damage_something(scene.world.project, scene.world.results, scene.chance)


@contextmanager
def _jump_clock(scene: Scene) -> Iterator[str]:
    jump = scene.chance.choice([-86400, -3600, -10, 10, 3600, 86400])
    assert scene.clock is not None
    scene.clock.jump(jump, scene.world.results)
    yield f"clock jumps by {jump} s and, for the next call, back"
    scene.clock.jump(-jump, scene.world.results)


@contextmanager
def _run_out_of_memory(scene: Scene) -> Iterator[str]:
    """Take all memory that the calls may use, until the kernel has killed one of their processes."""
    group = scene.world.memory_group
    is_v2 = (group / "memory.max").exists()
    limit = group / ("memory.max" if is_v2 else "memory.limit_in_bytes")
    used = int((group / ("memory.current" if is_v2 else "memory.usage_in_bytes")).read_text())
    events = group / ("memory.events" if is_v2 else "memory.oom_control")
    limit.write_text(str(used + (32 << 20)))
    hog = subprocess.Popen([sys.executable, "-c", _HOG, str(events)], stdin=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        hog.wait(30)
    limit.write_text("max" if is_v2 else "-1")
    hog.wait()
    yield "out of memory"


#: Takes memory step by step until the kernel has killed somebody else for it.
_HOG = """
import sys, time
kills = lambda: [line for line in open(sys.argv[1]) if line.startswith("oom_kill ")]
before, taken, end = kills(), [], time.monotonic() + 20
while kills() == before and time.monotonic() < end:
    taken.append(bytearray(b"x") * (4 << 20))
"""


@contextmanager
def _call_twice(scene: Scene) -> Iterator[str]:
    """Call the same study again while it runs: one of the two does it, and the other does no harm."""
    with (scene.world.folder / "second.log").open("w", encoding="utf-8") as output:
        second = start_call(scene.study, scene.world.project, scene.world.temporary, output, {})
        if scene.chance.random() < 0.5:
            time.sleep(scene.chance.uniform(0, 8))
            scene.call.kill()
            description = "a second call at once, the first one killed"
        else:
            description = "a second call at once"
        second.wait()
    yield description


@contextmanager
def _upgrade(scene: Scene) -> Iterator[str]:
    """Replace the server's program between two calls."""
    scene.call.kill()
    install_other(scene.world, scene.environment)
    yield "kill -9, then another build of the server"


def install_other(world: World, environment: dict[str, str]) -> None:
    """Put a program of Redis in front of the installed one that differs in a byte which is never executed."""
    path, folder = shutil.which("redis-server"), world.folder / "bin"
    assert path is not None
    folder.mkdir()
    (folder / "redis-server").write_bytes(Path(path).read_bytes() + b"x")
    (folder / "redis-server").chmod(0o755)
    environment["PATH"] = f"{folder}:{os.environ['PATH']}"


@contextmanager
def _take_ports(scene: Scene) -> Iterator[str]:
    """Listen, here and there for a moment, on the few ports that there are left."""
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40019")
    thief = subprocess.Popen([sys.executable, "-c", _THIEF], stdin=subprocess.DEVNULL)
    lasting = scene.chance.choice([2.0, 300.0])  # seconds
    with suppress(subprocess.TimeoutExpired):
        scene.call.wait(lasting)
    thief.kill()
    thief.wait()
    yield f"ports taken for {lasting:g} s"
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("32768 60999")


_THIEF = """
import random, socket, time
held = []
while True:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(("127.0.0.1", random.randrange(40000, 40020)))
        one.listen()
        held.append(one)
    except OSError:
        one.close()
    if len(held) > 8:
        held.pop(0).close()
    time.sleep(0.01)
"""

KINDS = {
    "kill snakemake": Kind(_kill_pipeline),
    "kill stage": Kind(_kill(r"\S*python\S* \S*bin/knobscope ")),
    "kill keeper": Kind(_kill(r"\S*python\S* (-\S+ )*\S*keeper\.py "), is_survived=True),
    "kill client": Kind(_kill(r"\S*java "), is_survived=True),
    "kill monitor": Kind(_kill(r"\S*python\S* (-\S+ )*\S*monitor\.py "), is_survived=True),
    "kill shell": Kind(_kill(r"\S*bash ")),
    "kill server": Kind(_kill(r"\S*(redis-server|postgres)\b"), needs_server=True, is_survived=True),
    "power cut": Kind(_cut_power),
    "disk full": Kind(_fill_disk),
    "I/O errors": Kind(_fail_io),
    "read-only": Kind(_make_read_only),
    "damaged file": Kind(_damage_file),
    "clock jump": Kind(_jump_clock, needs_clock=True),
    "out of memory": Kind(_run_out_of_memory),
    "two at once": Kind(_call_twice),
    "upgrade": Kind(_upgrade, only=("redis",), result="redis-upgraded"),
    "ports taken": Kind(_take_ports, only=("postgresql-ports",)),
}

"""Real loop devices, torn down for sure, and fio jobs that wait to be watched."""

import contextlib
import ctypes
import fcntl
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from knobscope.devices import BlockDevice, find_block_device
from knobscope.watch import Profile, Watch, gate

_FREEZE, _THAW = 0xC0045877, 0xC0045878  # FIFREEZE, FITHAW
_BLKPG, _ADD, _DELETE = 0x1269, 1, 2  # linux/blkpg.h; the programs for it are gone from util-linux of Debian 13


def run(*command: str | Path | None) -> str:
    """Run a program of the system and return what it prints."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout.strip()


def add_partition(disk: str, number: int, first: int, sectors: int) -> None:
    """Tell the kernel of a partition that no table has."""
    _change_partition(_ADD, disk, number, first, sectors)


def delete_partition(disk: str, number: int) -> None:
    """Take it back; OSError: somebody uses it."""
    _change_partition(_DELETE, disk, number, 0, 0)


def _change_partition(operation: int, disk: str, number: int, first: int, sectors: int) -> None:
    partition = ctypes.create_string_buffer(struct.pack("<qqi132x", first * 512, sectors * 512, number))
    with Path(disk).open("rb") as opened:
        size = ctypes.sizeof(partition) - 1
        fcntl.ioctl(opened, _BLKPG, struct.pack("@iiiP", operation, 0, size, ctypes.addressof(partition)))


@dataclass(frozen=True)
class Loop:
    """A loop device and, when it has a file system, where that is mounted."""

    node: str
    block: BlockDevice
    mount: Path | None = None

    def read_stat(self) -> list[int]:
        """The kernel's own sums; see https://docs.kernel.org/block/stat.html."""
        return [int(number) for number in Path("/sys/block", self.block.name, "stat").read_text().split()]

    def sync(self) -> None:
        """Let its file system write everything back."""
        run("sync", "--file-system", self.mount)

    def count_in_flight(self) -> int:
        return sum(int(number) for number in Path("/sys/block", self.block.name, "inflight").read_text().split())


@contextlib.contextmanager
def open_loop(
    image: Path, size_mib: int, filesystem: Literal["ext4", "xfs"] | None = None, *mkfs: str
) -> Iterator[Loop]:
    with ExitStack() as stack:
        image.touch()
        os.truncate(image, size_mib << 20)
        stack.callback(image.unlink)
        if filesystem:
            options = ["-E", "lazy_itable_init=0,lazy_journal_init=0"] if filesystem == "ext4" else []
            run(f"mkfs.{filesystem}", "-q", *options, *mkfs, image)
        node = run("losetup", "--find", "--show", "--partscan", "--direct-io=on", image)
        stack.callback(run, "losetup", "--detach", node)
        mount = None
        if filesystem:
            mount = image.with_suffix(".mount")
            mount.mkdir()
            stack.callback(mount.rmdir)
            run("mount", node, mount)
            stack.callback(run, "umount", mount)
        yield Loop(node, find_block_device(Path(node)), mount)


class Syncs:
    """Notices that others on the machine call sync(2), which writes back and flushes every file system, ours included.

    The kernel flushes the device of an ext4 file system at each call, even where nothing is to be written.
    """

    def __init__(self, idle: Loop) -> None:
        self._idle = idle
        self._seen = idle.read_stat()

    def came(self) -> bool:
        """Whether somebody has called it since this was asked last."""
        before, self._seen = self._seen, self._idle.read_stat()
        return self._seen != before


@dataclass(frozen=True)
class Freezable:
    """A loop device whose writes hang while the file system below it is frozen."""

    loop: Loop
    below: Path

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Callable[[], None]]:
        """Freeze; yields what thaws, which happens at the end in any case."""
        descriptor = os.open(self.below, os.O_RDONLY)
        is_frozen = [True]

        def thaw() -> None:
            if is_frozen.pop():
                is_frozen.append(False)
                fcntl.ioctl(descriptor, _THAW, 0)

        fcntl.ioctl(descriptor, _FREEZE, 0)
        try:
            yield thaw
        finally:
            thaw()
            os.close(descriptor)


class Gated:
    """A command that has its process already and starts when told."""

    def __init__(self, command: list[str]) -> None:
        read_end, self._opener = os.pipe()
        program = [sys.executable, "-I", "-S", gate.__file__, str(read_end), *command]
        self._process = subprocess.Popen(program, pass_fds=[read_end], stdout=subprocess.DEVNULL)
        self.pid = self._process.pid
        os.close(read_end)

    def start(self) -> None:
        os.write(self._opener, b"!")
        os.close(self._opener)

    def finish(self) -> None:
        assert self._process.wait(60) == 0

    def run(self) -> None:
        self.start()
        self.finish()


class Job(Gated):
    """A fio job with its figures."""

    def __init__(self, options: dict[str, str | int], output: Path) -> None:
        self._output = output
        super().__init__(["fio", *(f"--{name}={value}" for name, value in options.items())])

    def read(self, direction: str) -> Any:
        return json.loads(self._output.read_text())["jobs"][0][direction]


#: fio(file, rw="write", bs="4k", ...) -> a job that waits to be started
Fio = Callable[..., Job]


def watch_jobs(
    watch: Watch, *followed: Gated, beside: tuple[Gated, ...] = (), after: Callable[[], object] | None = None
) -> Profile:
    """Run commands at the same time, some of them followed, and return the profile of it."""
    watch.follow([job.pid for job in followed])
    watch.begin()
    for job in (*followed, *beside):
        job.start()
    for job in (*followed, *beside):
        job.finish()
    if after:
        after()
    return watch.end()


def row_of(profile: Profile, op: str) -> dict[str, Any]:
    return next(row for row in profile["io_profile"] if row["op"] == op)


def times_of(profile: Profile, queue: int = -1) -> dict[int, int]:
    """Depth -> ns of one queue; -1 is the whole device."""
    return {row["depth"]: row["time_ns"] for row in profile["queue_depth"] if row["queue"] == queue}

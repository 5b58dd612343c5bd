"""The place of a trial: a project on a small file system of its own, and everything that could be left behind in view.

A trial runs in mount, IPC and network namespaces of its own. Its file system lies in an image in memory, behind a loop
device that the kernel removes when nothing has it mounted any more; so even a trial that is killed leaves nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from studies import ROOT, Study

from knobscope.devices.power import shut_down

_IMAGE_MIB = 256
_LOOP_GET_STATUS64, _LOOP_SET_STATUS64 = 0x4C05, 0x4C04
_LOOP_STATUS = "=5Q4I160s2Q"
_SIZE_LIMIT = 4
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
#: How long what was killed may take to end.
_PATIENCE_S = 15.0
_SMALL_DEVICE = """
name: small
description: an ext4 file system of its own
tier: auto
emulate: {image_directory: ., size: 64MiB, filesystem: ext4}
"""


@dataclass(frozen=True)
class World:
    """A project, with what surrounds it."""

    folder: Path  # of the trial, in memory
    groups: tuple[Path, ...]  # control groups of the trial, in all hierarchies that matter

    @property
    def image(self) -> Path:
        """The bytes of the file system."""
        return self.folder / "image"

    @property
    def mount(self) -> Path:
        """Where it is mounted."""
        return self.folder / "mount"

    @property
    def project(self) -> Path:
        """Where Snakemake is called: specs and results."""
        return self.mount / "project"

    @property
    def results(self) -> Path:
        """What the study has made."""
        return self.project / "results/tiny"

    @property
    def temporary(self) -> Path:
        """TMPDIR of all calls."""
        return self.folder / "tmp"

    @property
    def memory_group(self) -> Path:
        """The control group that limits memory."""
        return next(group for group in self.groups if (group / _memory_file(group)).exists())

    def mount_image(self) -> None:
        """Mount the file system, with what a machine that starts does before: replay its journal, repair it."""
        result = subprocess.run(["e2fsck", "-p", str(self.image)], capture_output=True, text=True, check=False)
        if result.returncode > 1:
            raise RuntimeError(f"e2fsck: {result.stdout}{result.stderr}")
        subprocess.run(["mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.mount)], check=True)

    def unmount_image(self) -> None:
        """Unmount the file system, what is mounted below it, and loop devices on its files; its own goes with that."""
        for point in sorted(_mounts_below(self.mount), reverse=True):
            if point == str(self.mount):
                for device, backing in _list_loops():
                    if backing.startswith(f"{self.mount}/"):
                        subprocess.run(["losetup", "--detach", device], check=True)
            _unmount(point)

    def cut_power(self) -> None:
        """Stop the file system where it is, without writing its log, and all processes; memory forgets what it held."""
        shut_down(self.mount)
        self.kill_all()
        subprocess.run(["ipcrm", "--all"], check=True)  # those of this trial's namespace
        for path in Path("/dev/shm").iterdir():  # noqa: S108
            path.unlink()

    def limit_device(self, size: int) -> None:
        """Let the device end after so many bytes (0: where it really does): whatever lies beyond gives EIO."""
        loop = os.open(self.find_loop(), os.O_RDWR)
        try:
            status = bytearray(struct.calcsize(_LOOP_STATUS))
            fcntl.ioctl(loop, _LOOP_GET_STATUS64, status)
            fields = list(struct.unpack(_LOOP_STATUS, status))
            fields[_SIZE_LIMIT] = size
            while True:
                try:
                    fcntl.ioctl(loop, _LOOP_SET_STATUS64, struct.pack(_LOOP_STATUS, *fields))
                except BlockingIOError:  # pages were dirtied meanwhile
                    continue
                return
        finally:
            os.close(loop)

    def find_loop(self) -> str:
        """Return the loop device of the image."""
        command = ["findmnt", "-no", "SOURCE", str(self.mount)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def find_processes(self) -> dict[int, str]:
        """Return all processes of the trial's calls, with their command lines."""
        lines = {}
        for members in {path for group in self.groups for path in group.rglob("cgroup.procs")}:
            try:
                for pid in map(int, members.read_text().split()):
                    line = Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ")
                    if line and pid != os.getpid():
                        lines[pid] = line.decode(errors="replace")
            except OSError:  # the process or the group has ended
                continue
        return lines

    def kill_all(self) -> None:
        """Kill all processes of the calls, at once, again and again until none is left."""
        deadline = time.monotonic() + _PATIENCE_S
        while (processes := self.find_processes()) and time.monotonic() < deadline:
            for pid in processes:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def await_silence(self) -> dict[int, str]:
        """Wait until no process of the calls is left; return those that stay."""
        deadline = time.monotonic() + _PATIENCE_S
        while (processes := self.find_processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return processes

    def is_finished(self) -> bool:
        """Whether the study has its report."""
        return (self.results / "report.html").exists()

    def begin_anew(self) -> None:
        """Forget all results of the study but the profiles of its devices."""
        for path in self.results.iterdir():
            if path.name != "devices":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def list_left(self) -> list[str]:
        """Return what a finished study should not have left, in words."""
        leftovers = [f"process {pid} ({command})" for pid, command in self.await_silence().items()]
        leftovers += [f"mount {point}" for point in _mounts_below(self.folder) if point != str(self.mount)]
        leftovers = [leftover for leftover in leftovers if leftover != f"mount {self.folder}"]
        leftovers += [
            f"loop device on {backing}"
            for _, backing in _list_loops()
            if backing.startswith(f"{self.folder}/") and backing != str(self.image)
        ]
        for kind in ("shm", "sem", "msg"):
            leftovers += [f"SysV {kind} {line.split()[1]}" for line in _lines(Path("/proc/sysvipc", kind))[1:]]
        leftovers += [f"/dev/shm/{path.name}" for path in Path("/dev/shm").iterdir()]  # noqa: S108
        leftovers += [f"temporary {path.name}" for path in self.temporary.iterdir()]
        leftovers += [f"control group {path}" for group in self.groups for path in group.iterdir() if path.is_dir()]
        leftovers += [f"file {path.relative_to(self.results)}" for path in self.results.rglob("*.part*")]
        return leftovers + [f"file {path}" for path in self.project.rglob("runs/*/runs/*")]  # copies of data


@contextmanager
def open_world(folder: Path, study: Study, profile: str | None) -> Iterator[World]:
    """Yield a project with a study that nothing has been done of; with `profile` its device is characterised already.

    To be called in mount, IPC and network namespaces that nobody else is in.
    """
    _leave_devices()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=711,size=2g", "faults", str(folder)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "shm", "/dev/shm"], check=True)  # noqa: S108
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    world = World(folder, tuple(_make_groups()))
    world.temporary.mkdir()
    world.temporary.chmod(0o1777)
    world.mount.mkdir()
    with world.image.open("wb") as image:
        image.truncate(_IMAGE_MIB << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "4096", str(world.image)], check=True)
    world.mount_image()
    try:
        _write_project(world, study, profile)
        yield world
    finally:
        world.kill_all()
        _reap()
        world.unmount_image()
        _leave(world.groups)


def _leave_devices() -> None:
    """Unmount in this namespace the emulated devices of others, who could not take them down while it lasts."""
    for point in reversed(_mounts_below(Path("/"))):  # those that cover others come last
        if ".knobscope-devices" in Path(point).parts:
            subprocess.run(["umount", "--lazy", point], check=True)


def _write_project(world: World, study: Study, profile: str | None) -> None:
    specs = world.project / "specs"
    specs.mkdir(parents=True)
    for kind in ("dbms", "workloads", "devices"):
        shutil.copytree(ROOT / "specs" / kind, specs / kind)
    (specs / "devices/small.yaml").write_text(_SMALL_DEVICE, encoding="utf-8")
    (specs / "studies").mkdir()
    (specs / "studies/tiny.yaml").write_text(study.text, encoding="utf-8")
    if profile is not None:
        (world.results / "devices").mkdir(parents=True)
        (world.results / "devices" / f"{study.device}.json").write_text(profile, encoding="utf-8")
    os.sync()


def _make_groups() -> Iterator[Path]:
    """Make a control group in each hierarchy that knobscope uses, and go into it."""
    for line in _lines(Path("/proc/mounts")):
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            group = Path(point, f"faults-{os.getpid()}")
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
            yield group


def _reap() -> None:
    """Wait for all killed children: a control group has members as long as somebody may ask how they ended."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _leave(groups: tuple[Path, ...]) -> None:
    for group in groups:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            inner.rmdir()
        group.rmdir()


def _memory_file(group: Path) -> str:
    return "memory.max" if (group / "cgroup.controllers").exists() else "memory.limit_in_bytes"


def _list_loops() -> Iterator[tuple[str, str]]:
    """Yield all loop devices with the files that they lie on."""
    for attribute in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached at this moment
            yield f"/dev/{attribute.parts[3]}", attribute.read_text().strip()


def _mounts_below(folder: Path) -> list[str]:
    points = [line.split()[4] for line in _lines(Path("/proc/self/mountinfo"))]
    return [point for point in points if Path(point).is_relative_to(folder)]


def _unmount(point: str) -> None:
    """Unmount, as soon as the last of the killed processes has let go of its files."""
    deadline = time.monotonic() + _PATIENCE_S
    while subprocess.run(["umount", point], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        if time.monotonic() > deadline:
            subprocess.run(["umount", point], check=True)
        time.sleep(0.1)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()

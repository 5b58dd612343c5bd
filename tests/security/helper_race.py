"""A caller of the device helper flips links while the helper works; root's file and root's mounts are watched.

Run as root in a mount namespace of its own: HELPER DIRECTORY FLIPS. Writes what happened, as JSON.
"""

import importlib.machinery
import importlib.util
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

NOBODY = 65534


def main() -> None:
    helper, top, flips = load(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)  # the helper's folder, of this test alone
    canary, user = top / "canary", top / "user"
    for folder in (canary, user / "own"):
        (folder / "x").mkdir(parents=True)
        make_image(folder / "x/disk.img")
    for mine in (user, user / "own", user / "own/x", user / "own/x/disk.img"):
        os.chown(mine, NOBODY, NOBODY)
    (user / "flip").symlink_to(user / "own")
    (canary / "x/mount").mkdir()
    subprocess.run(["mount", "-o", "loop", canary / "x/disk.img", canary / "x/mount"], check=True)
    watched = [canary / "x/disk.img", canary / "x/mount", canary / "x", Path("/run/.knobscope-devices")]
    helper._MOUNTS.mkdir(mode=0o711)
    before = [status_of(path) for path in watched]
    counted = mmap.mmap(-1, 16)
    attackers = [start(flip_links, user, canary, counted), start(replace_points, helper._MOUNTS, counted)]
    outcomes = {"up": [0, 0, 0, 0], "down": [0, 0, 0, 0]}  # done, failed, refused, a traceback
    try:
        while min(struct.unpack("QQ", counted)) < flips or not all(outcomes["up"][:2]):
            loop = call(helper, outcomes, "up", f"{user}/flip/x/disk.img")
            for name in [loop] if loop else ["loop0", "loop1"]:
                call(helper, outcomes, "down", name)
            assert os.path.ismount(canary / "x/mount"), "root's file system is gone"
            assert all(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in attackers), "an attacker ended"
    finally:
        for pid in attackers:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    json.dump(
        {
            "flips": struct.unpack("QQ", counted),
            "outcomes": outcomes,
            "is_canary_as_before": before == [status_of(path) for path in watched],
            "left": [point for point in mounted if point.startswith(str(helper._MOUNTS))],
        },
        sys.stdout,
    )
    subprocess.run(["umount", canary / "x/mount"], check=True)


def load(path: str) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("device_helper", path)
    spec = importlib.util.spec_from_loader("device_helper", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def make_image(image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(2 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", "-O", "^has_journal", image], check=True)


def status_of(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_uid, status.st_gid, status.st_mode


def call(helper: ModuleType, outcomes: dict[str, list[int]], *arguments: str) -> str:
    """Call the helper and count the outcome; return the loop device that it attached."""
    code, point = fork_helper(helper, NOBODY, arguments)
    outcomes[arguments[0]][code] += 1
    loop = os.path.basename(point)  # noqa: PTH119 - "" of ""
    if loop:
        backing = Path("/sys/block", loop, "loop/backing_file").read_text().strip()
        assert "/user/own/" in backing, f"attached {backing}"
    return loop


def fork_helper(helper: ModuleType, uid: int, arguments: Sequence[str]) -> tuple[int, str]:
    """Run the helper in a process of its own, as sudo would; return its exit code, 3 for a traceback, and output."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        os.dup2(write_end, 1)
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)  # pytest's would be closed
        os.environ["SUDO_UID"] = str(uid)
        sys.argv[1:] = arguments
        try:
            code = helper.main()
        finally:
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end) as output:
        point = output.read().strip()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), point


def start(attack: object, *arguments: object) -> int:
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            attack(*arguments)  # type: ignore[operator]
        finally:
            os._exit(1)
    return child


def flip_links(user: Path, canary: Path, counted: mmap.mmap) -> None:
    """Let the folder of the image, and the image itself, be root's every other moment."""
    image, plain, flip, following = user / "own/x/disk.img", user / "own/x/plain.img", user / "flip", user / "next"
    flips = 0
    while True:
        for target in (canary, user / "own"):
            following.symlink_to(target)
            following.rename(flip)
            time.sleep(0.0002)
        image.rename(plain)
        image.symlink_to(canary / "x/disk.img")
        time.sleep(0.0002)
        plain.rename(image)
        flips += 2
        counted[:8] = struct.pack("Q", flips)


def replace_points(mounts: Path, counted: mmap.mmap) -> None:
    """Try to put something else where the helper mounts, or to hold its lock; return when it could be done."""
    folder, flips = mounts / str(NOBODY), 0
    while True:
        for point in (folder / f"loop{loop}" for loop in range(4)):
            for attempt, *arguments in (
                (point.rename, folder / "other"),
                (point.rmdir,),
                (point.symlink_to, "/etc"),
                (folder.rename, mounts / "other"),
                (os.open, folder, os.O_RDONLY),
            ):
                try:
                    attempt(*arguments)
                except OSError:
                    flips += 1
                else:
                    return
        time.sleep(0.0002)
        counted[8:] = struct.pack("Q", flips)


if __name__ == "__main__":
    main()

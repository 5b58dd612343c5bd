#!/usr/bin/python3 -IBS
"""Attaches and mounts images of emulated devices for a user who is not root; called through sudo, trusts no argument.

    up FILE               attach an image of the caller's, mount it (ext4 or xfs), print the directory
    down [--lazy] LOOP    unmount what `up` mounted from a loop device, e.g. loop3; the kernel then detaches it

setup/install-helper.sh puts it, root-owned, where sudoers can name it. FILE is the only path that a caller can name. It
is opened once, by a process that is the caller and nothing more, and only the descriptor is used. Mount points lie in
a directory for each user in which only root can write, so a user can put nothing else in their place.

Whoever may call it hands the kernel a file system of their own making: allow it to people you trust that far.
"""

import ctypes
import errno
import fcntl
import json
import os
import pwd
import re
import resource
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: As emulated devices of root, the folder has the name by which knobscope keeps other users' servers out of them.
_MOUNTS = Path("/run/.knobscope-devices")
#: Root's alone: what the queue of a device had before a run of root's changed it (src/knobscope/devices/queue.py).
_NOTES = Path("/run/knobscope-queues")
_LOOP_CTL_GET_FREE, _LOOP_CONFIGURE = 0x4C82, 0x4C0A
_LO_FLAGS_AUTOCLEAR, _LO_FLAGS_DIRECT_IO = 4, 16
_LO_FLAGS_AT = 4 + 4 + 52  # struct loop_config: fd, block_size, then lo_flags in struct loop_info64
_LOOP_CONFIG_BYTES = 304
_MS_NOSUID, _MS_NODEV, _UMOUNT_NOFOLLOW, _MNT_DETACH = 2, 4, 8, 2
#: An image says what happens after an error in it, up to a panic of the whole machine: not those of users.
_FILESYSTEMS = {"ext4": "errors=remount-ro", "xfs": ""}
_MOST_DEVICES, _MOST_BYTES = 64, 16 << 40  # of one user: each takes memory of the kernel, by its size
_LONGEST_S, _OPENING_S, _PATIENCE_S = 60, 30, 10
_STATUS = struct.Struct("=4Q")  # of an opened file: mode, owner, number of names, size
_libc = ctypes.CDLL(None, use_errno=True)


class RefusedError(Exception):
    """What was asked for is not allowed."""


def main() -> int:
    """Do the one thing that was asked for; 0 done, 1 failed, 2 refused."""
    try:
        caller = _find_caller()
        _shed_inheritance()
        _carry_out(caller, sys.argv[1:])
    except RefusedError as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:  # ValueError: a limit that even root may not raise
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


def _find_caller() -> pwd.struct_passwd:
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not re.fullmatch(r"[1-9][0-9]{0,9}", uid):
        raise RefusedError("call it through sudo, as a user who is not root")
    try:
        return pwd.getpwuid(int(uid))
    except (KeyError, OverflowError) as error:
        raise RefusedError("there is no such user") from error


def _shed_inheritance() -> None:
    """Drop what the caller could stop us with halfway: descriptors, limits, signals of the terminal, closed outputs."""
    os.closerange(3, 1 << 20)
    while os.open("/dev/null", os.O_RDWR) < 3:  # 0 to 2 are there now: nothing that we print ends up in a device
        pass
    os.closerange(3, 4)
    os.umask(0o022)
    os.chdir("/")
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_DATA):
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    for number in (signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGALRM, signal.SIGCHLD})
    signal.alarm(_LONGEST_S)


def _carry_out(caller: pwd.struct_passwd, arguments: list[str]) -> None:
    match arguments:
        case ["up", file]:
            _bring_up(caller, file)
        case ["down", loop]:
            _take_down(caller, loop, 0)
        case ["down", "--lazy", loop]:
            _take_down(caller, loop, _MNT_DETACH)
        case _:
            raise RefusedError(f"unknown arguments {arguments!r:.200}")


def _bring_up(caller: pwd.struct_passwd, path: str) -> None:
    image, mode, owner, links, size = _open_as(caller, path)
    if not stat.S_ISREG(mode) or owner != caller.pw_uid or links != 1:
        raise RefusedError(f"{path!r:.200} is no plain file of user {caller.pw_uid}")
    if size > _MOST_BYTES:
        raise RefusedError(f"{path!r:.200} has {size} bytes; expected at most {_MOST_BYTES}")
    with _held_folder(caller) as folder:
        if len(list(folder.iterdir())) >= _MOST_DEVICES:
            raise RefusedError(f"user {caller.pw_uid} has {_MOST_DEVICES} devices, the most that one may have")
        loop = _attach(image, caller)
        point = folder / f"loop{loop}"
        point.mkdir(exist_ok=True)
        try:
            _mount(loop, point, caller)
            if not select.select([], [1], [], _PATIENCE_S)[1]:
                raise OSError(errno.ETIMEDOUT, "nobody reads where the device is")
            os.write(1, f"{point}\n".encode())
        except OSError:  # also when nobody can read where it is: a call that fails leaves no device
            _libc.umount2(os.fsencode(point), _UMOUNT_NOFOLLOW | _MNT_DETACH)
            _forget(point)
            raise


def _open_as(caller: pwd.struct_passwd, path: str) -> tuple[int, ...]:
    """Open a file in a process that is the caller, so that it can reach nothing that the caller cannot.

    Returns the descriptor, and the file's mode, owner, number of names and size, all as that process sees them: a FUSE
    file system of the caller's answers nobody else, not even root.
    """
    if not path.startswith("/") or "\0" in path:
        raise RefusedError(f"{path!r:.200} is no absolute path")
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        os._exit(_send_opened(caller, path, theirs))
    theirs.close()
    status, descriptors, _, _ = socket.recv_fds(ours, _STATUS.size, 1)
    ours.close()
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if len(descriptors) != 1:
        raise OSError(abs(number), f"{path!r:.200} cannot be opened: {_tell_end(number)}")
    return descriptors[0], *_STATUS.unpack(status)


def _send_opened(caller: pwd.struct_passwd, path: str, to: socket.socket) -> int:
    """Become the caller for good, send the descriptor, and return 0, or the number of the error."""
    try:
        signal.alarm(_OPENING_S)  # a file system of the caller's own may never answer
        _become(caller)
        image = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        status = os.fstat(image)
        known = _STATUS.pack(status.st_mode, status.st_uid, status.st_nlink, status.st_size)
        socket.send_fds(to, [known], [image])
    except OSError as error:
        return error.errno or 1
    return 0


def _tell_end(code: int) -> str:
    """Say why a process that was the caller failed: the error's number, or a signal's, negative."""
    if code == -signal.SIGALRM:
        return f"its file system did not answer within {_OPENING_S} s"
    return os.strerror(code) if code > 0 else f"signal {-code} ended the process that did it"


def _become(caller: pwd.struct_passwd) -> None:
    os.initgroups(caller.pw_name, caller.pw_gid)
    os.setresgid(caller.pw_gid, caller.pw_gid, caller.pw_gid)
    os.setresuid(caller.pw_uid, caller.pw_uid, caller.pw_uid)


@contextmanager
def _held_folder(caller: pwd.struct_passwd) -> Iterator[Path]:
    """Yield the directory of a user's mount points, one call of that user's at a time; nobody else can hold it."""
    folder = _MOUNTS / str(caller.pw_uid)
    for directory in (_MOUNTS, folder):
        directory.mkdir(mode=0o711, exist_ok=True)
        found = directory.lstat()
        if found.st_uid != 0 or stat.S_IFMT(found.st_mode) != stat.S_IFDIR or found.st_mode & 0o066:
            raise RefusedError(f"{directory} is not root's alone, with mode 0711")
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        for point in folder.iterdir():
            _forget(point)
        yield folder
    finally:
        os.close(held)


def _forget(point: Path) -> None:
    """Remove a mount point unless its device is attached: what is unmounted and still in use counts, too."""
    if not Path("/sys/block", point.name, "loop").exists():
        with suppress(OSError):  # busy
            point.rmdir()


def _attach(image: int, caller: pwd.struct_passwd) -> int:
    """Attach a file to a free loop device, which detaches itself when nobody uses it: it cannot be left behind."""
    config = bytearray(_LOOP_CONFIG_BYTES)
    struct.pack_into("=II", config, 0, image, 0)
    struct.pack_into("=I", config, _LO_FLAGS_AT, _LO_FLAGS_DIRECT_IO | _LO_FLAGS_AUTOCLEAR)
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    while True:
        number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
        loop = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)  # stays open until we end
        child = os.fork()
        if child == 0:
            os._exit(_configure_as(caller, loop, bytes(config)))
        failure = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if failure == 0:
            _undo_settings(number)
            return number
        os.close(loop)
        if failure != errno.EBUSY:  # another program was faster
            raise OSError(abs(failure), f"the image cannot be attached: {_tell_end(failure)}")


def _undo_settings(number: int) -> None:
    """Undo what others set on a loop device, which it keeps: without a cache to flush, the kernel sends no flushes.

    The device was free, so the run that a note is of has been killed.
    """
    queue, note = Path(f"/sys/block/loop{number}/queue"), _NOTES / f"loop{number}.json"
    if note.exists():
        before = json.loads(note.read_text(encoding="utf-8"))
        note.unlink()
        for setting in before.keys() - {"sha256"}:  # the seal
            (queue / setting).write_text(before[setting], encoding="ascii")
    (queue / "max_sectors_kb").write_text((queue / "max_hw_sectors_kb").read_text(encoding="ascii"), encoding="ascii")
    (queue / "write_cache").write_text("write back", encoding="ascii")
    if "[none]" not in (queue / "scheduler").read_text(encoding="ascii"):
        (queue / "scheduler").write_text("none", encoding="ascii")


def _configure_as(caller: pwd.struct_passwd, loop: int, config: bytes) -> int:
    """Become the caller, attach, and return 0 or the error's number: the kernel asks for the size in our name."""
    try:
        _become(caller)
        fcntl.ioctl(loop, _LOOP_CONFIGURE, config)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _mount(loop: int, point: Path, caller: pwd.struct_passwd) -> None:
    """Mount a loop device and give the top of its file system to the caller."""
    for kind, options in _FILESYSTEMS.items():
        if _libc.mount(
            f"/dev/loop{loop}".encode(),
            os.fsencode(point),
            kind.encode(),
            ctypes.c_ulong(_MS_NOSUID | _MS_NODEV),
            options.encode(),
        ):
            number = ctypes.get_errno()
            continue
        top = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchown(top, caller.pw_uid, caller.pw_gid)
        finally:
            os.close(top)
        return
    raise OSError(number, f"the image cannot be mounted: {os.strerror(number)}")


def _take_down(caller: pwd.struct_passwd, loop: str, flags: int) -> None:
    if not re.fullmatch(r"loop(0|[1-9][0-9]{0,5})", loop):
        raise RefusedError(f"{loop!r:.200} is no loop device; expected one as loop3")
    with _held_folder(caller) as folder:
        point = folder / loop
        if not _is_mounted(loop, point):
            raise RefusedError(
                f"this version of the helper did not mount {loop} for user {caller.pw_uid}; for a device of an earlier "
                f"version, ask root for: umount /dev/{loop}; losetup --detach /dev/{loop}"
            )
        if _libc.umount2(os.fsencode(point), flags | _UMOUNT_NOFOLLOW) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{loop} cannot be unmounted: {os.strerror(number)}")
        _forget(point)


def _is_mounted(loop: str, point: Path) -> bool:
    """Whether a loop device is mounted there; a file system that has failed cannot be asked."""
    try:
        number = Path("/sys/block", loop, "dev").read_text().strip()
    except OSError:
        return False
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").split("\n"))
    return any(mount[2:5:2] == [number, str(point)] for mount in mounts)


if __name__ == "__main__":
    sys.exit(main())

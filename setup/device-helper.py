#!/usr/bin/python3 -IBS
"""Attaches and mounts images of emulated devices for a user who is not root; called through sudo, trusts no argument.

setup/install-helper.sh puts it, root-owned, where sudoers can name it. It does these things only, and only with what
belongs to the caller, opened once and never looked up by its path again:

    losetup --find --show --direct-io=on FILE    attach an image; prints /dev/loopN
    losetup --detach /dev/loopN                  detach one that it attached for the same user
    mount -o nosuid,nodev /dev/loopN DIRECTORY   mount such a device (ext4 or xfs)
    chown UID:GID DIRECTORY                      give the top of such a mount to the caller
    umount [--lazy] DIRECTORY                    unmount such a device

Whoever may call it hands the kernel a file system of their own making: allow it to people you trust that far.
"""

import array
import ctypes
import fcntl
import os
import pwd
import re
import stat
import struct
import sys
from pathlib import Path

_RECORDS = Path("/run/knobscope-devices")  # a file per loop device: whose it is
_LOOP_CTL_GET_FREE, _LOOP_CONFIGURE, _LOOP_CLR_FD, _LOOP_GET_STATUS64 = 0x4C82, 0x4C0A, 0x4C01, 0x4C05
_LO_FLAGS_DIRECT_IO = 16
_LO_FLAGS_AT = 4 + 4 + 52  # struct loop_config: fd, block_size, then lo_flags in struct loop_info64
_LOOP_CONFIG_BYTES = 304
_STATUS_BYTES = 232
_MS_NOSUID, _MS_NODEV, _UMOUNT_NOFOLLOW, _MNT_DETACH = 2, 4, 8, 2
_FILESYSTEMS = ("ext4", "xfs")
_libc = ctypes.CDLL(None, use_errno=True)


class RefusedError(Exception):
    """What was asked for is not allowed."""


def main() -> int:
    """Do the one thing that was asked for; 0 done, 1 failed, 2 refused."""
    try:
        caller = _find_caller()
        print(_carry_out(caller, sys.argv[1:]), end="")
    except RefusedError as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


def _find_caller() -> pwd.struct_passwd:
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not re.fullmatch(r"[1-9]\d{0,9}", uid):
        raise RefusedError("call it through sudo, as a user who is not root")
    try:
        return pwd.getpwuid(int(uid))
    except (KeyError, OverflowError) as error:
        raise RefusedError("there is no such user") from error


def _carry_out(caller: pwd.struct_passwd, arguments: list[str]) -> str:
    match arguments:
        case ["losetup", "--find", "--show", "--direct-io=on", file]:
            return _attach(caller, file)
        case ["losetup", "--detach", node]:
            return _detach(caller, node)
        case ["mount", "-o", "nosuid,nodev", node, directory]:
            return _mount(caller, node, directory)
        case ["chown", owner, directory]:
            return _give(caller, owner, directory)
        case ["umount", directory]:
            return _unmount(caller, directory, 0)
        case ["umount", "--lazy", directory]:
            return _unmount(caller, directory, _MNT_DETACH)
    raise RefusedError(f"unknown arguments {arguments!r:.200}")


def _open(caller: pwd.struct_passwd, path: str, flags: int) -> int:
    """Open something as the caller: what the caller may not reach, the caller may not name."""
    if not path.startswith("/") or "\0" in path:
        raise RefusedError(f"{path!r:.200} is no absolute path")
    groups = os.getgrouplist(caller.pw_name, caller.pw_gid)
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(caller.pw_gid)
    os.seteuid(caller.pw_uid)
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


def _attach(caller: pwd.struct_passwd, path: str) -> str:
    file = _open(caller, path, os.O_RDWR)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != caller.pw_uid or found.st_nlink != 1:
        raise RefusedError(f"{path} is no plain file of user {caller.pw_uid}")
    with _Records() as records:
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
        loop = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
        config = bytearray(_LOOP_CONFIG_BYTES)
        struct.pack_into("=II", config, 0, file, 0)
        struct.pack_into("=I", config, _LO_FLAGS_AT, _LO_FLAGS_DIRECT_IO)
        fcntl.ioctl(loop, _LOOP_CONFIGURE, bytes(config))
        records.write(number, caller.pw_uid, _backing_of(loop))
    return f"/dev/loop{number}\n"


class _Records:
    """Whose the loop devices are that this program attached: user, and the file behind it; one caller at a time."""

    def __enter__(self) -> "_Records":
        os.umask(0o022)
        _RECORDS.mkdir(mode=0o755, exist_ok=True)
        found = _RECORDS.lstat()
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
            raise RefusedError(f"{_RECORDS} is not root's alone")
        self._lock = os.open(_RECORDS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def write(self, number: int, uid: int, backing: str) -> None:
        part = _RECORDS / ".part"
        part.write_text(f"{uid} {backing}")
        part.replace(_RECORDS / str(number))


def _backing_of(loop: int) -> str:
    """Return device and inode of the file behind a loop device; OSError when there is none."""
    status = array.array("B", bytes(_STATUS_BYTES))
    fcntl.ioctl(loop, _LOOP_GET_STATUS64, status)
    device, inode = struct.unpack_from("=QQ", status, 0)
    return f"{device} {inode}"


def _open_loop(caller: pwd.struct_passwd, node: str) -> tuple[int, int]:
    """Return number and descriptor of a loop device that was attached for the caller."""
    match = re.fullmatch(r"/dev/loop(0|[1-9]\d{0,5})", node)
    if match is None:
        raise RefusedError(f"{node!r:.200} is no loop device")
    number = int(match[1])
    try:
        uid, backing = (_RECORDS / str(number)).read_text().split(" ", 1)
    except FileNotFoundError as error:
        raise RefusedError(f"{node} was not attached by this program") from error
    loop = os.open(node, os.O_RDWR | os.O_CLOEXEC)
    if uid != str(caller.pw_uid) or backing != _backing_of(loop):
        raise RefusedError(f"{node} belongs to somebody else")
    return number, loop


def _detach(caller: pwd.struct_passwd, node: str) -> str:
    number, loop = _open_loop(caller, node)
    fcntl.ioctl(loop, _LOOP_CLR_FD)
    os.close(loop)
    (_RECORDS / str(number)).unlink(missing_ok=True)
    return ""


def _mount(caller: pwd.struct_passwd, node: str, path: str) -> str:
    _open_loop(caller, node)
    directory = _open(caller, path, os.O_RDONLY | os.O_DIRECTORY)
    if os.fstat(directory).st_uid != caller.pw_uid:
        raise RefusedError(f"{path} is no directory of user {caller.pw_uid}")
    target = f"/proc/self/fd/{directory}".encode()  # this directory, whatever its path names by now
    for kind in _FILESYSTEMS:
        if _libc.mount(node.encode(), target, kind.encode(), ctypes.c_ulong(_MS_NOSUID | _MS_NODEV), None) == 0:
            return ""
    raise OSError(ctypes.get_errno(), f"{node} cannot be mounted: {os.strerror(ctypes.get_errno())}")


def _open_mount(caller: pwd.struct_passwd, path: str) -> int:
    """Open the top of a mount of one of the caller's loop devices."""
    parent, name = os.path.split(path.rstrip("/"))
    above = _open(caller, parent, os.O_PATH | os.O_DIRECTORY)
    if not name or name in (".", ".."):
        raise RefusedError(f"{path!r:.200} names no directory")
    top = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    device = os.fstat(top).st_dev
    node = f"/dev/loop{os.minor(device)}"
    if os.major(device) != 7 or device == os.fstat(above).st_dev:
        raise RefusedError(f"{path} is no mounted loop device")
    _open_loop(caller, node)
    return top


def _give(caller: pwd.struct_passwd, owner: str, path: str) -> str:
    if owner != f"{caller.pw_uid}:{caller.pw_gid}":
        raise RefusedError(f"{owner!r:.200} is not the caller, {caller.pw_uid}:{caller.pw_gid}")
    top = _open_mount(caller, path)
    os.chown(f"/proc/self/fd/{top}", caller.pw_uid, caller.pw_gid)
    return ""


def _unmount(caller: pwd.struct_passwd, path: str, flags: int) -> str:
    _open_mount(caller, path)  # closed again by what follows: an open descriptor would keep it busy
    os.closerange(3, 64)
    parent, name = os.path.split(path.rstrip("/"))
    os.fchdir(_open(caller, parent, os.O_RDONLY | os.O_DIRECTORY))
    if _libc.umount2(name.encode(), flags | _UMOUNT_NOFOLLOW) != 0:
        raise OSError(ctypes.get_errno(), f"{path} cannot be unmounted: {os.strerror(ctypes.get_errno())}")
    return ""


if __name__ == "__main__":
    sys.exit(main())

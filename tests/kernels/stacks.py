"""Stacks of storage in a guest (device mapper, dm-crypt, md, bcache, btrfs), made for a check, taken apart after it."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Name of a stack -> what it is made of, from its top down; those of nothing are file systems on a plain disk.
STACKS = {
    "ext4": (),
    "lvm": ("lvm",),
    "stripes": ("stripes",),
    "crypt": ("crypt",),
    "raid0": ("raid0",),
    "raid1": ("raid1",),
    "raid4": ("raid4",),
    "raid5": ("raid5",),
    "raid6": ("raid6",),
    "raid10": ("raid10",),
    "lvm-crypt-raid1": ("lvm", "crypt", "raid1"),
    "bcache": ("bcache",),
    "btrfs": (),
    "btrfs-zstd": (),
    "btrfs-crypt": ("crypt",),
}
#: Level of md -> how many disks it gets.
_DISKS = {"raid0": 2, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 4}
_KEY = "0123456789abcdef" * 8
_LVM = ("--config", "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{use_devicesfile=0}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def stacked(name: str, disks: Sequence[Path]) -> Iterator[Path]:
    """Make a stack on as many of the disks as it needs, and a file system on it; yield where this is mounted."""
    with contextlib.ExitStack() as made:
        devices = list(disks)
        for layer in reversed(STACKS[name]):
            devices = [made.enter_context(_LAYERS[layer](layer, devices))]
        yield made.enter_context(_mounted(name, devices[0]))


@contextlib.contextmanager
def _mounted(name: str, device: Path) -> Iterator[Path]:
    is_btrfs = name.startswith("btrfs")
    eager = ("-E", "lazy_itable_init=0,lazy_journal_init=0")  # else the kernel goes on with it during the check
    _run(*(("mkfs.btrfs", "-q", "-f") if is_btrfs else ("mkfs.ext4", "-q", "-F", *eager)), str(device))
    mount = Path(tempfile.mkdtemp())
    _run("mount", *(["-o", "compress-force=zstd"] if name.endswith("zstd") else []), str(device), str(mount))
    try:
        yield mount
    finally:
        _run("umount", str(mount))


@contextlib.contextmanager
def _lvm(kind: str, devices: Sequence[Path]) -> Iterator[Path]:
    members = [str(device) for device in devices[: 2 if kind == "stripes" else 1]]
    _run("pvcreate", "-q", "-ff", "-y", *_LVM, *members)
    _run("vgcreate", "-q", *_LVM, "stack", *members)
    try:
        stripes = f"--stripes={len(members)}"
        _run("lvcreate", "-q", "-y", "-Wn", *_LVM, stripes, "-l", "100%FREE", "-n", "data", "stack")
        yield Path("/dev/mapper/stack-data")
    finally:
        _run("vgremove", "-q", "-f", *_LVM, "stack")
        _run("pvremove", "-q", "-ff", "-y", *_LVM, *members)


@contextlib.contextmanager
def _crypt(_: str, devices: Sequence[Path]) -> Iterator[Path]:
    sectors = int(subprocess.check_output(["blockdev", "--getsz", str(devices[0])]))
    table = f"0 {sectors} crypt aes-xts-plain64 {_KEY} 0 {devices[0]} 0"
    _run("dmsetup", "create", "secret", "--noudevsync", "--noudevrules", "-u", "CRYPT-PLAIN-secret", "--table", table)
    try:
        _run("dmsetup", "mknodes", "secret")
        yield Path("/dev/mapper/secret")
    finally:
        _run("dmsetup", "remove", "--noudevsync", "--noudevrules", "--retry", "secret")


@contextlib.contextmanager
def _raid(level: str, devices: Sequence[Path]) -> Iterator[Path]:
    members = [str(device) for device in devices[: _DISKS[level]]]
    options = ["--run", "--assume-clean", f"--level={level[4:]}", f"--raid-devices={len(members)}"]
    _run("mdadm", "--create", "/dev/md0", "--quiet", *options, *members)
    try:
        yield Path("/dev/md0")
    finally:
        _run("mdadm", "--stop", "--quiet", "/dev/md0")
        _run("mdadm", "--zero-superblock", *members)


@contextlib.contextmanager
def _bcache(_: str, devices: Sequence[Path]) -> Iterator[Path]:
    members = [str(device) for device in devices[:2]]
    _run("make-bcache", "--wipe-bcache", "--writeback", "--cache", members[0], "--bdev", members[1])
    for member in members:
        Path("/sys/fs/bcache/register").write_text(member)
    stacked, cache = Path("/sys/block/bcache0/bcache"), next(Path("/sys/fs/bcache").glob("*-*"))
    try:
        yield Path("/dev/bcache0")
    finally:
        (stacked / "stop").write_text("1")
        (cache / "stop").write_text("1")
        while cache.exists():  # it stops when all is written
            time.sleep(0.1)


_LAYERS = {"bcache": _bcache, "lvm": _lvm, "stripes": _lvm, "crypt": _crypt, **dict.fromkeys(_DISKS, _raid)}


def share_by_name(profile: Any) -> dict[str, Any]:
    """Return, of bytes read and written: the share that has a file or another name, and how much each file has.

    `device` is no name here, as a file system lies on it.
    """
    total = sum(row["device_bytes"] for row in profile["io_profile"] if row["op"] in ("read", "write"))
    names: dict[str, int] = {}
    for row in profile["files"]:
        if row["name"]:
            names[row["name"]] = names.get(row["name"], 0) + row["bytes"]
    named = sum(size for name, size in names.items() if name != "device")
    return {"named": named / total if total else 0.0, "device_bytes": total, "names": names}

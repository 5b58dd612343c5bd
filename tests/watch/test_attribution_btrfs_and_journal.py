"""Pages that do not tell whose they are: compressed ones of btrfs, its metadata, and ext4's journal of data."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from loop_devices import Gated, Loop, open_loop, row_of, run, watch_jobs

from knobscope.devices import find_block_device
from knobscope.watch import Profile, name_files, open_watch
from knobscope.watch.files import search_device

pytestmark = pytest.mark.real

#: Writes what compresses well and is synced, then as much past the page cache from memory that is shared.
COMPRESSED = """
import mmap, os, sys
file = os.open(sys.argv[1] + "/compressed", os.O_CREAT | os.O_WRONLY)
for i in range(2048):
    os.write(file, b"%d" % i * 700)
os.fsync(file)
file = os.open(sys.argv[1] + "/direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 1 << 20)
page[:] = os.urandom(1 << 20)
for i in range(4):
    os.write(file, page)
os.lseek(file, 0, 0)
for i in range(4):
    os.readv(file, [page])
"""
#: In blocks of 1 KiB.
JOURNALLED = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_CREAT | os.O_WRONLY)
for i in range(4000):
    os.write(file, os.urandom(1024))
os.fsync(file)
"""
#: Leaves nothing unwritten: a block of each page only, and a log that is cut off before it was written.
SYNCED = """
import os, sys
file = os.open(sys.argv[1] + "/blocks", os.O_CREAT | os.O_WRONLY)
for i in range(100):
    os.pwrite(file, os.urandom(1024), i * 4096)
os.fsync(file)
log = os.open(sys.argv[1] + "/log", os.O_CREAT | os.O_WRONLY)
os.write(log, bytes(150_000))
os.ftruncate(log, 0)
os.fsync(log)
"""
UNSYNCED = """
import os, sys
os.write(os.open(sys.argv[1] + "/unsynced", os.O_CREAT | os.O_WRONLY), os.urandom(1 << 20))
"""

_AT_ONCE = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
Mount = Callable[..., Loop]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """mount("ext4", *options of mkfs, options="of the mount") -> a mounted loop device."""
    with ExitStack() as stack:

        def mount(filesystem: str, *options: str, mounted: str = "defaults") -> Loop:
            loop = stack.enter_context(open_loop(tmp_path / "image", 512))
            run(f"mkfs.{filesystem}", "-q", *options, loop.node)
            point = tmp_path / "mount"
            point.mkdir()
            run("mount", "-o", mounted, loop.node, point)
            stack.callback(run, "umount", point)
            return Loop(loop.node, find_block_device(Path(loop.node)), point)

        yield mount


def watch(loop: Loop, script: str, *, synced: bool = True) -> Profile:
    with open_watch(loop.block, 4096, "device") as opened:
        gated = Gated([sys.executable, "-c", script, str(loop.mount)])
        return watch_jobs(opened, gated, after=loop.sync if synced else None)


def sum_files(profile: Profile, op: str) -> dict[str, int]:
    return {row["name"]: row["bytes"] for row in profile["files"] if row["op"] == op}


def require_btrfs() -> None:
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs (btrfs-progs)")
    if "\tbtrfs\n" not in Path("/proc/filesystems").read_text():
        subprocess.run(["modprobe", "btrfs"], check=False)
    if "\tbtrfs\n" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no btrfs")


def test_compressed_writes_of_btrfs_are_the_files(mount: Mount) -> None:
    require_btrfs()
    loop = mount("btrfs", mounted="compress-force=zstd")
    profile = watch(loop, COMPRESSED)
    written, write = sum_files(profile, "write"), row_of(profile, "write")
    assert 0 < written["compressed"] < 1 << 20  # of 5 MiB
    assert written["direct"] == sum_files(profile, "read")["direct"] == 4 << 20
    assert set(written) == {"compressed", "direct", "metadata"}
    assert profile["addresses"] == []
    assert write["foreign_bytes"] == 0
    assert write["own_bytes"] + write["inode_bytes"] >= written["compressed"] + written["direct"]
    assert loop.mount is not None
    rows = name_files(profile, search_device(loop.block, profile, loop.mount))
    assert {row["file"]: row["found_by"] for row in rows if row["inode"]} == {"compressed": "path", "direct": "path"}


def test_metadata_of_btrfs_are_no_file(mount: Mount) -> None:
    """Also where the inode that stands for them got the memory of a file's: it then looks like a file."""
    require_btrfs()
    loop = mount("btrfs")
    assert loop.mount is not None
    for number in range(500):
        (loop.mount / f"file{number}").write_bytes(os.urandom(100))
    run("umount", loop.mount)
    run("mount", loop.node, loop.mount)
    profile = watch(loop, JOURNALLED)
    assert set(sum_files(profile, "write")) == {"file", "metadata"}
    assert row_of(profile, "write")["foreign_bytes"] == 0


@pytest.mark.parametrize("block", ["1024", pytest.param("4096", marks=pytest.mark.long)])
def test_journalled_data_are_the_journals_and_then_the_files(mount: Mount, block: str) -> None:
    profile = watch(mount("ext4", "-b", block, *_AT_ONCE, mounted="data=journal"), JOURNALLED)
    written, write = sum_files(profile, "write"), row_of(profile, "write")
    assert written["file"] == 4_096_000
    assert written["journal"] > written["file"]  # the same blocks, and those that describe them
    assert write["journal_bytes"] == written["journal"] + written["metadata"]
    assert write["own_bytes"] + write["inode_bytes"] == written["file"]


def test_nothing_is_unwritten_after_a_sync(mount: Mount) -> None:
    loop = mount("ext4", "-b", "1024", *_AT_ONCE)
    assert watch(loop, SYNCED)["unwritten_bytes"] == 0
    profile = watch(loop, UNSYNCED, synced=False)
    assert profile["unwritten_bytes"] <= 2 << 20
    assert profile["unwritten_bytes"] + sum_files(profile, "write").get("unsynced", 0) >= 1 << 20  # others may sync

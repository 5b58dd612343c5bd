"""Extent maps against the raw bytes of real loop devices, on both file systems and behind a partition table."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from emulated import require_loops
from loop_devices import add_partition, delete_partition, open_loop, run
from waiting import wait_until

from knobscope.devices import bring_up, find_block_device, identify_block, take_down
from knobscope.devices.extents import AddressIndex, inspect_file, read_partition_start
from knobscope.specs import Device, Emulation

pytestmark = pytest.mark.real

BLOCK = 4096


def remove_partition(disk: str) -> None:
    """Wait until nobody has it mounted: a sandbox that another test began meanwhile has a copy of all mounts."""

    def is_gone() -> bool:
        try:
            delete_partition(disk, 1)
        except OSError as error:
            assert error.errno == errno.EBUSY
            return False
        return True

    assert wait_until(is_gone)


def write_blocks(file: Path, blocks: dict[int, bytes]) -> None:
    """Write blocks of one letter each at block numbers, and wait until they are on the device."""
    with file.open("wb") as opened:
        for number, letter in blocks.items():
            opened.seek(number * BLOCK)
            opened.write(letter * BLOCK)
        opened.flush()
        os.fsync(opened.fileno())


@pytest.fixture(params=["ext4", "xfs"])
def mounted(request: Any, tmp_path: Path) -> Iterator[Path]:
    require_loops()
    emulation = Emulation(image_directory=str(tmp_path), size="300MiB", filesystem=request.param)
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    yield bring_up(device, tmp_path)
    take_down(device, tmp_path)


def read_device(mount: Path, address: int, length: int) -> bytes:
    """Read the raw device below a mounted file system, past the page cache of the device."""
    node = Path("/dev", find_block_device(mount).name)
    run("blockdev", "--flushbufs", node)
    with node.open("rb") as opened:
        opened.seek(address)
        return opened.read(length)


def test_every_block_is_where_the_extents_say(mounted: Path) -> None:
    file = mounted / "file"
    letters = {number: bytes([65 + number % 26]) for number in (0, 1, 2, 7, 8, 300, 301, 9000)}
    write_blocks(file, letters)
    found = inspect_file(file)
    inode, extents = found.inode, found.extents
    assert inode == file.stat().st_ino
    covered = {}
    for extent in extents:
        for step in range(0, extent.length, BLOCK):
            covered[(extent.offset + step) // BLOCK] = read_device(mounted, extent.address + step, BLOCK)
    assert set(letters) <= set(covered)
    assert {number: covered[number] for number in letters} == {n: letter * BLOCK for n, letter in letters.items()}
    assert not {3, 100, 5000} & set(covered)  # holes have no address


def test_many_extents_come_in_several_calls(mounted: Path) -> None:
    file = mounted / "sparse"
    write_blocks(file, {2 * number: b"x" for number in range(700)})
    extents = inspect_file(file).extents
    assert len(extents) >= 700
    assert [extent.offset for extent in extents] == sorted({extent.offset for extent in extents})


def test_allocated_blocks_have_an_address_before_they_are_written(mounted: Path) -> None:
    file = mounted / "allocated"
    with file.open("wb") as opened:
        os.posix_fallocate(opened.fileno(), 0, 64 * BLOCK)
    assert sum(extent.length for extent in inspect_file(file).extents) >= 64 * BLOCK


def test_what_is_in_the_page_cache_only_has_no_address(mounted: Path) -> None:
    file = mounted / "cached"
    with file.open("wb") as opened:
        opened.write(b"y" * 8 * BLOCK)
        opened.flush()
        assert inspect_file(file).extents == []
        os.fsync(opened.fileno())
        assert sum(extent.length for extent in inspect_file(file).extents) >= 8 * BLOCK


def test_data_inside_the_inode_has_no_address(tmp_path: Path) -> None:
    require_loops()
    with open_loop(tmp_path / "image", 64, "ext4", "-O", "inline_data") as loop:
        assert loop.mount is not None
        small, large = loop.mount / "small", loop.mount / "large"
        small.write_bytes(b"tiny")
        write_blocks(large, {0: b"L"})
        os.sync()
        assert inspect_file(small).extents == []
        (extent,) = inspect_file(large).extents
        assert read_device(loop.mount, extent.address, BLOCK) == b"L" * BLOCK


def test_addresses_on_a_partition_are_those_of_the_disk(tmp_path: Path) -> None:
    require_loops()
    image, mount, first, sectors = tmp_path / "disk", tmp_path / "mount", 2048, 100_000
    mount.mkdir()
    with open_loop(image, 64) as loop, ExitStack() as stack:
        disk = loop.node
        add_partition(disk, 1, first, sectors)
        stack.callback(remove_partition, disk)
        run("mkfs.ext4", "-q", f"{disk}p1")
        run("mount", f"{disk}p1", mount)
        stack.callback(run, "umount", mount)
        write_blocks(mount / "file", {5: b"P"})
        (extent,) = inspect_file(mount / "file").extents
        start = read_partition_start(find_block_device(mount))
        assert start == first * 512
        assert image.read_bytes()[start + extent.address :][:BLOCK] == b"P" * BLOCK
        assert read_partition_start(find_block_device(Path(disk))) == 0
        assert identify_block(find_block_device(mount)) == identify_block(find_block_device(Path(disk))) is not None


def test_a_device_that_is_attached_again_is_another_one(tmp_path: Path) -> None:
    require_loops()
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, 1 << 20)
    with ExitStack() as attached:
        disk = run("losetup", "--find", "--show", image)
        attached.callback(run, "losetup", "--detach", disk)
        first = identify_block(find_block_device(Path(disk)))
        assert first == identify_block(find_block_device(Path(disk)))
    with ExitStack() as attached:
        if subprocess.run(["losetup", disk, image], check=False).returncode == 0:  # else another process was faster
            attached.callback(run, "losetup", "--detach", disk)
        assert identify_block(find_block_device(Path(disk))) not in (None, first)


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic links"):
        inspect_file(tmp_path / "link")
    assert inspect_file(tmp_path / "pipe").extents == []


def test_addresses_find_their_file_from_first_to_last_byte() -> None:
    index = AddressIndex([(8192, 4096, 2), (0, 4096, 1), (12288, 4096, 3)])
    found = {address: index.find(address) for address in (0, 4095, 4096, 8191, 8192, 12287, 12288, 16383, 16384)}
    assert list(found.values()) == [1, 1, None, None, 2, 2, 3, 3, None]
    assert AddressIndex([]).find(0) is None

"""The checks of `make test-kernels` on this machine's own kernel, on loop devices."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checks import check_buffered, check_direct, check_light, check_stack, check_waits
from loop_devices import open_loop

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture(scope="module")
def tracing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A trace of its own, beside those that others make."""
    mount = tmp_path_factory.mktemp("tracing")
    if subprocess.run(["mount", "-t", "tracefs", "tracefs", mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("tracefs cannot be mounted")
    instance = mount / f"instances/knobscope-{os.getpid()}"
    try:
        instance.mkdir()
        yield instance
        instance.rmdir()
    except PermissionError:
        pytest.skip("tracefs is read-only")
    finally:
        subprocess.run(["umount", mount], check=True)


def compare(report: dict[str, Any]) -> None:
    """Ours and ftrace's are the same; the depth of a request that one sees a little later differs a little."""
    assert report["monitor"] == "bpf", report["reason"]
    assert report["lost_by_ftrace"] == 0
    for name in ("requests", "bytes"):
        ours, theirs = report[name]
        assert ours == theirs > 0
    assert report["sizes_equal"]
    _, theirs = report["depths"][-1]
    lowest, highest = report["depth_bounds"]  # nearly one where no completion was hidden
    assert 0.95 * lowest <= theirs <= 1.05 * highest


def test_direct(tracing: Path, tmp_path: Path) -> None:
    with open_loop(tmp_path / "image", 512) as loop:
        report = check_direct(tracing, loop.block.name)
    compare(report)
    assert report["own"] == 1


def test_light_mode(tracing: Path, tmp_path: Path) -> None:
    with open_loop(tmp_path / "image", 512) as loop:
        report = check_light(tracing, loop.block.name)
    assert report["monitor"] == "light", report["reason"]
    assert report["lost_by_ftrace"] == 0
    requests, (flushes, their_flushes), hidden = report["requests"], report["flushes"], report["hidden"]
    assert requests[0] + hidden == requests[1] > 0
    assert flushes <= their_flushes <= flushes + 1  # the end of one may be hidden, too
    assert hidden < 20
    if not hidden:
        assert report["bytes"][0] == report["bytes"][1]
        assert report["sizes_equal"]
    assert report["timed"] == requests[0] + flushes
    ours, theirs = report["depth"]
    assert ours == pytest.approx(theirs, rel=0.05)


def test_buffered(tracing: Path, tmp_path: Path) -> None:
    with open_loop(tmp_path / "image", 512) as loop:
        report = check_buffered(tracing, loop.block.name, "ext4")
    compare(report)
    assert report["missing"] == {}
    assert report["own_and_inode_share"] >= 0.99
    assert report["file_bytes"] == report["call_bytes"] == 24 << 20


@pytest.mark.parametrize("filesystem", ["btrfs", "btrfs-zstd"])
def test_all_bytes_of_btrfs_have_a_name(filesystem: str, tmp_path: Path) -> None:
    with open_loop(tmp_path / "image", 512) as loop:
        report = check_stack(filesystem, [Path(loop.node)])
    assert "failed" not in report, report
    assert report["named"] >= 0.99
    assert report["names"]["direct"] == 4 << 20
    assert 0 < report["names"]["buffered"] <= 4 << 20
    assert (report["names"]["buffered"] < 4 << 20) == filesystem.endswith("zstd")


def test_waits(tmp_path: Path) -> None:
    """All time of each thread has a name; what the kernel says of the same threads is in `make test-kernels`."""
    with open_loop(tmp_path / "image", 512) as loop:
        report = check_waits(loop.block.name)
    assert "failed" not in report, report
    assert report["threads"] == 12

"""Fixtures of tests on real loop devices."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_devices import Fio, Freezable, Job, Loop, Syncs, open_loop

_SYS_ADMIN = 1 << 21
_SWITCH = Path("/proc/sys/kernel/bpf_stats_enabled")


@pytest.fixture(scope="session", autouse=True)
def privileges() -> None:
    """Loop devices and BPF need root with all its capabilities, and a loop driver."""
    status = Path("/proc/self/status").read_text()
    capabilities = re.search(r"^CapEff:\s*(\w+)", status, re.MULTILINE)
    if os.geteuid() != 0 or capabilities is None or not int(capabilities[1], 16) & _SYS_ADMIN:
        pytest.skip("needs root with CAP_SYS_ADMIN: loop devices, mounts, BPF")
    if not Path("/dev/loop-control").exists():
        pytest.skip("this kernel has no loop devices")


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """A raw loop device of 128 MiB with direct I/O on its image."""
    with open_loop(tmp_path_factory.mktemp("loop") / "image", 128) as opened:
        yield opened


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """An ext4 file system with a journal on a loop device of its own."""
    with open_loop(tmp_path_factory.mktemp("mounted") / "image", 256, "ext4") as opened:
        yield opened


@pytest.fixture(scope="session")
def _idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with open_loop(tmp_path_factory.mktemp("idle") / "image", 16, "ext4") as opened:
        yield opened


@pytest.fixture
def syncs(_idle: Loop) -> Syncs:
    """Whether others synchronise our file systems while the test runs."""
    return Syncs(_idle)


@pytest.fixture(scope="module")
def freezable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freezable]:
    with (
        open_loop(tmp_path_factory.mktemp("below") / "image", 128, "ext4") as below,
        open_loop(below.mount / "inner", 32) as inner,  # type: ignore[operator]
    ):
        yield Freezable(inner, below.mount)  # type: ignore[arg-type]


@pytest.fixture
def fio(tmp_path: Path) -> Fio:
    """Prepare fio: fio(file, rw="write", bs="4k", ...) waits to be started."""

    def prepare(file: str | Path, **options: str | int) -> Job:
        output = tmp_path / f"fio-{time.monotonic_ns()}.json"
        options = {"name": "job", "filename": str(file), "output-format": "json", "output": str(output), **options}
        return Job(options, output)

    return prepare


@pytest.fixture
def direct(fio: Fio) -> Fio:
    """The same with direct I/O and an asynchronous engine."""

    def prepare(file: str | Path, **options: str | int) -> Job:
        return fio(file, **{"direct": 1, "ioengine": "libaio", "size": "64m", **options})

    return prepare


@pytest.fixture
def statistics() -> Iterator[None]:
    """Let the kernel measure BPF programs; switched off again, since measuring costs too."""
    before = _SWITCH.read_text()
    _SWITCH.write_text("1")
    yield
    _SWITCH.write_text(before)

"""fio on a real file of a real device."""

from pathlib import Path

import pytest
from loop_devices import Syncs, open_loop

from knobscope.devices import OpenDevice, open_device
from knobscope.errors import UserError
from knobscope.specs import Device
from knobscope.stages.characterise.fio import Engine, FioFile, FioRefusedError, lay_out_file

pytestmark = pytest.mark.real

WINDOW = {"PATTERN": "randwrite", "BLOCK": 8192, "DEPTH": 4, "JOBS": 1, "FSYNC": 0, "FDATASYNC": 0}


@pytest.fixture
def here(tmp_path: Path) -> Device:
    return Device(name="here", description="a directory", tier="auto", path=str(tmp_path))


def written(opened: OpenDevice) -> tuple[int, int]:
    """Requests and bytes that the block device has written, as the kernel counts them."""
    fields = Path("/sys/block", opened.block.name, "stat").read_text().split()
    return int(fields[4]), 512 * int(fields[6])


def test_what_fio_reports_is_what_the_device_does(loop: OpenDevice, tmp_path: Path) -> None:
    with lay_out_file(loop, 32 << 20) as file, open_loop(tmp_path / "idle", 16, "ext4") as idle:
        assert file.engine.direct
        syncs, before = Syncs(idle), written(loop)
        figures = file.run_window("window", 300, WINDOW)
        requests, size = (after - earlier for after, earlier in zip(written(loop), before, strict=True))
        is_shared = syncs.came()
    done = figures["write"]["total_ios"]
    assert done > 0
    assert requests >= done  # the ramp is not in fio's figures
    assert size >= done * 8192
    assert is_shared or size / requests == pytest.approx(8192, rel=0.05)  # sync(2) writes metadata, too


def test_file_is_gone_afterwards_and_uses_at_most_half_of_the_space(loop: OpenDevice) -> None:
    free = loop.free_bytes
    with lay_out_file(loop, 1 << 40) as file:
        assert file.path.stat().st_size == file.bytes <= free / 2
        assert file.path.stat().st_blocks * 512 >= file.bytes  # laid out, not sparse
    assert list(loop.directory.iterdir()) == []


def test_listed_writes_are_carried_out_as_listed(loop: OpenDevice) -> None:
    listed = [(8192, 4096), (0, 16384), (1 << 20, 65536), (4096, 4096)]
    with lay_out_file(loop, 32 << 20) as file:
        before = written(loop)
        done = file.replay(listed, durable=True, longest_ms=5000)
        requests, _ = (after - earlier for after, earlier in zip(written(loop), before, strict=True))
    assert [(offset, size) for offset, size, _ in done] == listed
    assert requests >= len(listed)
    assert all(1000 < ns < 5e9 for _, _, ns in done)
    assert list(loop.directory.iterdir()) == []


def test_file_is_gone_after_a_failure(loop: OpenDevice) -> None:
    with pytest.raises(FioRefusedError, match="KNOBSCOPE_PATTERN"), lay_out_file(loop, 16 << 20) as file:
        file.run_window("window", 100, WINDOW | {"PATTERN": "sideways"})
    assert list(loop.directory.iterdir()) == []


def test_engine_that_waits_reaches_depth_with_jobs(here: Device, tmp_path: Path) -> None:
    engine = Engine("psync", direct=False)
    assert engine.split(4) == (1, 4)
    with open_device(here, tmp_path, "study") as opened, lay_out_file(opened, 16 << 20) as file:
        waiting = FioFile(file.program, file.path, file.bytes, engine)
        depth, jobs = engine.split(4)
        figures = waiting.run_window("window", 200, WINDOW | {"DEPTH": depth, "JOBS": jobs})
    assert figures["write"]["iops"] > 0


def test_missing_fio_names_the_command_that_installs_it(
    here: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        open_device(here, tmp_path, "study") as opened,
        pytest.raises(UserError, match="apt-get install fio"),
        lay_out_file(opened, 16 << 20),
    ):
        pass


def test_device_without_space_is_an_error_of_the_user(loop: OpenDevice) -> None:
    (loop.directory / "full").write_bytes(b"x" * (loop.free_bytes - (8 << 20)))
    with pytest.raises(UserError, match=r"a test file needs 32 MiB on .*, where 8"), lay_out_file(loop, 16 << 20):
        pass
    (loop.directory / "full").unlink()

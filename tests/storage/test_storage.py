"""Files appear whole, are checked when read, and outlive a power cut."""

import contextlib
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.storage import (
    DamagedFileError,
    read_sealed,
    set_aside,
    whole_directory,
    whole_file,
    write_json,
    write_sealed,
)

CONTENT = {"text": "für", "number": 0.1, "list": [1, None], "nested": {"b": 1, "a": float("inf")}}


def test_a_sealed_file_gives_back_what_was_written(tmp_path: Path) -> None:
    write_sealed(tmp_path / "deep/er.json", CONTENT)
    assert read_sealed(tmp_path / "deep/er.json") == CONTENT
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["er.json"]


def damages() -> dict[str, bytes]:
    whole = json.dumps({"run": {"status": "ok"}, "sha256": "0" * 64}).encode()
    return {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "garbage": os.urandom(200),
        "NULs": bytes(200),
        "another type": b"[1, 2]\n",
        "no seal": b'{"run": {}}',
        "another seal": whole,
    }


@pytest.mark.parametrize("damage", damages())
def test_damage_is_found_and_names_the_file(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(damages()[damage])
    with pytest.raises(DamagedFileError, match=r"run\.json is damaged: ") as caught:
        read_sealed(path)
    assert caught.value.path == path


def test_a_changed_number_breaks_the_seal(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_sealed(path, {"throughput_ops": 100.0})
    path.write_text(path.read_text().replace("100.0", "900.0"))
    with pytest.raises(DamagedFileError, match="checksum"):
        read_sealed(path)


def test_an_absent_file_is_not_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "none.json")


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(RuntimeError, match="in the middle"), whole_file(tmp_path / "a.json") as part:
        part.write_text("half")
        raise RuntimeError("in the middle")
    with pytest.raises(RuntimeError, match="in the middle"), whole_directory(tmp_path / "d") as part:
        (part / "x").write_text("half")
        raise RuntimeError("in the middle")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": "1\n"}


def test_a_damaged_directory_is_set_aside_and_an_older_one_given_up(tmp_path: Path) -> None:
    for round_ in ("first", "second"):
        with whole_directory(tmp_path / "block") as part:
            (part / "runs.parquet").write_text(round_)
        assert set_aside(tmp_path / "block") == tmp_path / "block.damaged"
    assert (tmp_path / "block.damaged/runs.parquet").read_text() == "second"
    assert not (tmp_path / "block").exists()


_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2


@contextlib.contextmanager
def mounted_ext4(image: Path, mount: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system and cutting its power need root")
def test_what_was_written_is_there_after_a_power_cut(tmp_path: Path) -> None:
    image, mount = tmp_path / "disk.img", tmp_path / "mount"
    mount.mkdir()
    image.touch()
    os.truncate(image, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted_ext4(image, mount) as root:
        for number in range(20):
            write_sealed(root / f"store/{number}.json", {"number": number})
        with whole_directory(root / "block") as part:
            (part / "runs.parquet").write_bytes(b"x" * 10_000)
        descriptor = os.open(root, os.O_RDONLY)
        fcntl.ioctl(descriptor, _SHUTDOWN, _NO_LOG_FLUSH.to_bytes(4, "little"))
        os.close(descriptor)
    with mounted_ext4(image, mount) as root:
        assert [read_sealed(root / f"store/{number}.json") for number in range(20)] == [
            {"number": number} for number in range(20)
        ]
        assert (root / "block/runs.parquet").read_bytes() == b"x" * 10_000

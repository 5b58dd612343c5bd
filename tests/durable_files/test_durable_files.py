"""Files appear whole, are checked when read, and outlive a power cut."""

import contextlib
import json
import os
from pathlib import Path

import duckdb
import pytest
from small_ext4 import make_ext4, mounted

from knobscope.cli import main
from knobscope.devices.power import shut_down
from knobscope.durable_files import (
    DamagedFileError,
    create_file,
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


def test_damaged_directories_are_set_aside_and_none_is_deleted(tmp_path: Path) -> None:
    for round_, aside in (("first", "block.damaged"), ("second", "block.damaged2")):
        with whole_directory(tmp_path / "block") as part:
            (part / "runs.parquet").write_text(round_)
        assert set_aside(tmp_path / "block") == tmp_path / aside
        assert (tmp_path / aside / "runs.parquet").read_text() == round_
    assert not (tmp_path / "block").exists()


def plant_links(path: Path, canary: Path) -> None:
    """Put links to a canary wherever a writer of this path might write."""
    for name in (path.name, f"{path.name}.part", f".{path.name}.part"):
        path.with_name(name).symlink_to(canary)


def test_no_writer_follows_a_link(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "precious").write_text("kept")
    file, directory, log = (tmp_path / name for name in ("report.html", "block", "x.log"))
    plant_links(file, canary / "precious")
    plant_links(directory, canary)
    plant_links(log, canary / "precious")
    write_json(file, 1)
    with whole_directory(directory) as part:
        (part / "runs.parquet").write_text("runs")
    os.close(create_file(log))
    assert [path.name for path in canary.iterdir()] == ["precious"]
    assert (canary / "precious").read_text() == "kept"
    assert file.read_text() == "1\n" and (directory / "runs.parquet").read_text() == "runs"
    assert not any(path.is_symlink() for path in (file, directory, log))


def test_a_hard_link_to_a_file_elsewhere_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    for name in ("report.html", "x.log"):
        (tmp_path / name).hardlink_to(tmp_path / "precious")
    write_json(tmp_path / "report.html", 1)
    os.close(create_file(tmp_path / "x.log"))
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system and cutting its power need root")
def test_what_was_written_is_there_after_a_power_cut(tmp_path: Path) -> None:
    image = make_ext4(tmp_path / "disk.img")
    with mounted(image) as root:
        for number in range(20):
            write_sealed(root / f"store/{number}.json", {"number": number})
        with whole_directory(root / "block") as part:
            (part / "runs.parquet").write_bytes(b"x" * 10_000)
        shut_down(root)
    with mounted(image) as root:
        assert [read_sealed(root / f"store/{number}.json") for number in range(20)] == [
            {"number": number} for number in range(20)
        ]
        assert (root / "block/runs.parquet").read_bytes() == b"x" * 10_000


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system and cutting its power need root")
def test_a_power_cut_leaves_the_old_database_or_the_new_one(tmp_path: Path) -> None:
    image = make_ext4(tmp_path / "disk.img")
    with mounted(image) as root:
        write_database(root / "study.duckdb", 1)
        with contextlib.suppress(OSError), whole_file(root / "study.duckdb") as part:
            write_rows(part, 2)
            shut_down(root)
    with mounted(image) as root:
        assert read_rows(root / "study.duckdb") == [1] * 1000
        write_database(root / "study.duckdb", 2)
        shut_down(root)
    with mounted(image) as root:
        assert read_rows(root / "study.duckdb") == [2] * 1000


def write_database(file: Path, content: int) -> None:
    with whole_file(file) as part:
        write_rows(part, content)


def write_rows(file: Path, content: int) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT CAST(? AS INTEGER) AS content FROM range(1000)", [content])


def read_rows(file: Path) -> list[int]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return [content for (content,) in connection.execute("FROM t").fetchall()]


def test_a_pipe_that_a_user_names_is_not_renamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It might be /dev/null, and the user root."""
    os.mkfifo(tmp_path / "pipe")
    study = Path(__file__).parents[2] / "specs/studies/quickstart.yaml"
    arguments = ["plan", "--study", str(study), "--case", "sqlite/local-disk/ycsb-a", "--phase", "sweep"]
    arguments += ["--fits", str(tmp_path / "pipe"), "--out", str(tmp_path / "plan.parquet")]
    assert main(arguments) == 2
    assert "pipe is damaged: it is empty" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()

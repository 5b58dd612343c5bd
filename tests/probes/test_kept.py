"""What root keeps between two starts of the monitor: in a folder of its own, whole, and made of the same."""

import json
import os
import resource
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kept
import pytest

NOBODY = 65534


class Maker:
    """Makes a value, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> dict[str, int]:
        self.made += 1
        return {"made": self.made}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where things are kept, not yet there."""
    if os.geteuid() != 0:
        pytest.skip("only what is root's is used")
    monkeypatch.setattr(kept, "FOLDER", str(tmp_path / "kept"))
    monkeypatch.setattr(kept, "_refusals", {})
    return tmp_path / "kept"


def keep_twice() -> tuple[Any, Any]:
    make = Maker()
    return kept.keep("test", ("source",), make), kept.keep("test", ("source",), make)


def test_it_is_made_once(folder: Path) -> None:
    assert keep_twice() == ({"made": 1}, {"made": 1})
    assert (folder.stat().st_mode & 0o7777, [path.stat().st_mode & 0o7777 for path in folder.iterdir()]) == (
        0o700,
        [0o600],
    )
    assert kept.list_refusals() == []


@pytest.mark.parametrize("other", [("source", ""), ("sourc", "e"), ("another kernel",)])
def test_what_is_made_of_something_else_is_another_thing(folder: Path, other: Sequence[str]) -> None:
    make = Maker()
    kept.keep("test", ("source",), make)
    assert kept.keep("test", other, make) == {"made": 2}
    assert len(list(folder.iterdir())) == 2


def damage_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)


def put_another_in_its_place(file: Path) -> None:
    kept.keep("test", ("another",), lambda: "other")
    (other,) = set(file.parent.iterdir()) - {file}
    other.rename(file)


@pytest.mark.parametrize(
    "damage",
    [
        damage_byte,
        lambda file: os.truncate(file, 20),
        lambda file: os.truncate(file, 0),
        lambda file: file.write_bytes(b"\xff\xfe\n\xff"),
        put_another_in_its_place,
    ],
    ids=["byte", "short", "empty", "no-text", "exchanged"],
)
def test_what_is_damaged_is_made_anew(folder: Path, damage: Callable[[Path], None]) -> None:
    make = Maker()
    kept.keep("test", ("source",), make)
    (file,) = folder.iterdir()
    damage(file)
    assert [kept.keep("test", ("source",), make) for _ in range(2)] == [{"made": 2}, {"made": 2}]
    assert kept.list_refusals() == []


def link_folder(folder: Path) -> None:
    folder.with_name("real").mkdir(mode=0o700)
    folder.symlink_to("real")


def make_folder(folder: Path, owner: int, mode: int) -> None:
    folder.mkdir()
    os.chown(folder, owner, owner)
    folder.chmod(mode)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (link_folder, "found Not a directory"),
        (lambda folder: make_folder(folder, NOBODY, 0o700), "found owner 65534, mode 0700"),
        (lambda folder: make_folder(folder, 0, 0o777), "found owner 0, mode 0777"),
        (lambda folder: make_folder(folder, 0, 0o750), "found owner 0, mode 0750"),
        (lambda folder: folder.write_text("a file"), "found Not a directory"),
        (lambda folder: folder.symlink_to("nowhere"), "found Not a directory"),
    ],
    ids=["link", "owner", "writable", "readable", "file", "dangling"],
)
def test_a_folder_that_is_not_roots_alone_is_refused_and_named(
    folder: Path, plant: Callable[[Path], None], found: str
) -> None:
    plant(folder)
    assert keep_twice() == ({"made": 1}, {"made": 2})
    (sentence,) = kept.list_refusals()
    assert str(folder) in sentence
    assert found in sentence
    assert not folder.is_dir() or list(folder.iterdir()) == []


def replace_by_link(file: Path) -> None:
    file.rename(file.parent.with_name("outside"))
    file.symlink_to("../outside")


def replace_by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.parametrize(
    "plant",
    [
        replace_by_link,
        replace_by_pipe,
        lambda file: os.chown(file, NOBODY, NOBODY),
        lambda file: file.chmod(0o666),
    ],
    ids=["link", "pipe", "owner", "writable"],
)
def test_a_file_that_is_not_roots_alone_is_not_read(folder: Path, plant: Callable[[Path], None]) -> None:
    make = Maker()
    kept.keep("test", ("source",), make)
    (file,) = folder.iterdir()
    plant(file)
    assert kept.keep("test", ("source",), make) == {"made": 2}
    (sentence,) = kept.list_refusals()
    assert str(file) in sentence


def test_the_ones_used_last_stay(folder: Path) -> None:
    for number in range(80):
        kept.keep("test", (str(number),), lambda: 0)
        kept.keep("test", ("0",), lambda: 0)
    make = Maker()
    assert len(list(folder.iterdir())) == 64
    assert kept.keep("test", ("0",), make) == 0
    assert kept.keep("test", ("1",), make) == {"made": 1}


@pytest.mark.real
def test_a_program_is_compiled_once_and_its_maps_are_found_again(system_python: str, tmp_path: Path) -> None:
    """The second start has neither bcc nor a compiler, and other descriptors; it counts the same."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    script = Path(__file__).with_name("counting.py")
    runs = [
        subprocess.run(
            [system_python, "-I", str(script), str(tmp_path / "kept"), str(descriptors)],
            capture_output=True,
            text=True,
            check=True,
        )
        for descriptors in (0, 7)
    ]
    first, second = (json.loads(run.stdout) for run in runs)
    assert (first["compiled"], second["compiled"]) == (True, False)
    assert first["counts"] == second["counts"] == {"1": 2, "2": 1}
    assert set(first["descriptors"]).isdisjoint(second["descriptors"])


@pytest.mark.real
def test_the_monitor_says_that_it_keeps_nothing(system_python: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    (device,) = [path.parent for path in Path("/sys/block").glob("*/mq")][:1]
    monitor = [system_python, "-I", str(Path(kept.__file__).with_name("monitor.py")), "--unit", "4096", "--device"]
    plant = 'mount -t tmpfs none /var/cache && mkdir -m 777 /var/cache/knobscope && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", plant, "sh", *monitor, (device / "dev").read_text().strip()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    found = "/var/cache/knobscope: found owner 0, mode 0777; expected owner 0, mode 0700"
    assert f"programs are compiled at every start: {found}" in json.loads(done.stdout.splitlines()[0])["limits"]


def test_what_cannot_be_written_leaves_nothing(folder: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        made = keep_twice()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert made == ({"made": 1}, {"made": 2})
    assert kept.list_refusals() == [f"programs are compiled at every start: {folder}: File too large"]
    assert list(folder.iterdir()) == []

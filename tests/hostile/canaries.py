"""What strangers send is opened by a child that is watched: canaries stay unread, unchanged and uncalled."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/stages/report"))
from simulated_specs import make_specs  # noqa: E402
from simulated_study import build_study  # noqa: E402

SECRET = "the-canary-sings"
STUDY = str(ROOT / "specs/studies/quickstart.yaml")
MOST_KIB = 1 << 20


@dataclass(frozen=True)
class Answer:
    code: int
    text: str
    traceback: str


@dataclass(frozen=True)
class Canaries:
    """A secret file, a directory that stays as it is, and a port that nobody calls."""

    file: Path
    directory: Path
    port: socket.socket

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port.getsockname()[1]}/"

    def check(self) -> None:
        assert self.file.read_text() == SECRET
        assert [path.name for path in self.directory.iterdir()] == ["kept"]
        with pytest.raises(BlockingIOError):
            self.port.accept()


Open = Callable[..., list[Answer]]
Forge = Callable[..., Path]


@pytest.fixture
def canaries(tmp_path: Path) -> Iterator[Canaries]:
    file, directory = tmp_path / "canary-file", tmp_path / "canary-directory"
    file.write_text(SECRET)
    directory.mkdir()
    (directory / "kept").touch()
    with socket.create_server(("127.0.0.1", 0)) as port:
        port.setblocking(False)
        yield Canaries(file, directory, port)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """The only directory that a command may change."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def open_watched(canaries: Canaries, run_folder: Path) -> Open:
    """Return a function that runs commands in a watched child: none may end in a traceback or touch a canary."""

    def open_(*commands: Sequence[object]) -> list[Answer]:
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("watched.py"), run_folder],
            input=json.dumps([[str(part) for part in command] for command in commands]),
            cwd=run_folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout.splitlines()[-1])
        answers = [Answer(**answer) for answer in told["answers"]]
        for command, answer in zip(commands, answers, strict=True):
            assert answer.traceback == "", f"{command}\n{answer.traceback}"
            assert answer.code in (0, 1, 2)
            assert SECRET not in answer.text
            assert not set(answer.text) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}
        assert told["seen"] == []
        assert told["peak_kib"] <= MOST_KIB
        for path in run_folder.rglob("*"):
            assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path
        canaries.check()
        return answers

    return open_


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a study that was never measured, with findings: change copies only."""
    return build_study(tmp_path_factory.mktemp("honest"), make_specs())


@pytest.fixture
def forge(honest: Path, tmp_path: Path) -> Forge:
    """Return a function that executes SQL on a copy of an honest database."""
    count = iter(range(1_000_000))

    def change(*statements: str) -> Path:
        copy = tmp_path / f"forged-{next(count)}.duckdb"
        shutil.copy(honest, copy)
        with duckdb.connect(str(copy)) as connection:
            for statement in statements:
                connection.execute(statement)
        return copy

    return change

"""What tests of several stages share: the shipped specs, directories that servers can reach, what `make check` runs."""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import studies
from emulated import require_loops
from shipped_specs import ROOT, shipped_dbms, shipped_workload

from knobscope.cli import main
from knobscope.devices import OpenDevice, open_device, take_down
from knobscope.specs import Dbms, Device, Emulation, Workload
from knobscope.stages.prepare import Snapshot, prepare_snapshot

#: Programs that every machine has with Python and this package; all else is for tests that are marked `real`.
_HARMLESS = {
    "git",
    "ls",
    "printf",
    "python",
    "python3",
    "sh",
    "snakemake",
    "tpchgen-cli",
    "true",
    Path(sys.executable).name,
}
#: Files of tests that begin first, so that no process waits for another one's last file: what takes long. `test_study`
#: makes the finished study that many others need, so those that do not need it come directly after it.
_FIRST = (
    "test_study.py",
    "devices/test_modelled.py",
    "stages/remeasure/test_remeasure_real.py",
    "stages/imitate/test_imitate_findings.py",
    "stages/detect/test_mismatch_rules.py",
    "stages/detect/test_file_rules.py",
    "test_documents.py",
    "stages/measure/test_full_data.py",
    "hostile/test_databases.py",
    "stages/characterise/test_profile.py",
    "commands/table/test_rank.py",
    "commands/table/test_replay.py",
    "stages/report/test_head.py",
    "stages/detect/test_io_rules.py",
    "test_small_study.py",  # these two wait for a study that test_study.py also makes
    "stages/tune/test_tune_real.py",
)
_unmarked: list[str] = []  # the test that runs, where it promises to need no server, device or root


def _refuse_programs(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _unmarked:
        program = str(arguments[0] or arguments[1][0])
        assert Path(program).name in _HARMLESS, f"{_unmarked[0]} starts {program}: mark it `real`"


sys.addaudithook(_refuse_programs)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest (`_FIRST`).

    A test on a real server or device is repeated once when it fails, since the machine is not ours alone; the summary
    names the number of repeated tests. Whatever needs nothing real has no excuse.
    """
    turn = {ROOT / "tests" / file: number for number, file in enumerate(_FIRST)}
    assert all(file.is_file() for file in turn), "a file of tests that begins first was moved"
    items.sort(key=lambda item: turn.get(item.path, len(turn)))
    for item in items:
        if _is_real(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves: they stay to the end, and to look at them all takes 0.2 s.

    Frozen objects outlive the interpreter, and DuckDB's module (nanobind) then lists 27 leaked instances: its types. So
    they are thawed however the process ends, that of a fork included.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hold tests that `make check` runs to what they promise: they start nothing that has to be installed."""
    _unmarked[:] = [] if _is_real(item) else [item.nodeid]
    try:
        return (yield)
    finally:
        _unmarked.clear()


def pytest_runtest_teardown() -> None:
    """Let fixtures of a whole file clean up: the last test that runs need not be one that used them."""
    _unmarked.clear()


def _is_real(item: pytest.Item) -> bool:
    return any(True for name in ("real", "fleet") for _ in item.iter_markers(name))


@pytest.fixture(scope="session")
def sqlite() -> Dbms:
    """The shipped SQLite spec."""
    return shipped_dbms("sqlite")


@pytest.fixture(scope="session")
def postgresql() -> Dbms:
    """The shipped PostgreSQL spec."""
    return shipped_dbms("postgresql")


@pytest.fixture(scope="session")
def short_workload() -> Workload:
    """YCSB A on a thousand records, measured for half a second; longer where many others wait for a processor."""
    full = shipped_workload("ycsb-a")
    crowd = max(1.0, os.getloadavg()[0] / 4 / (os.cpu_count() or 1))
    return full.model_copy(update={"records": 1000, "threads": 1, "warmup_s": 0.2, "measure_s": 0.5 * crowd})


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A directory that all processes of this test run share (`studies.make_once`)."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def prepare(shared: Path) -> Callable[[Dbms, Workload, Path], Snapshot]:
    """Return a function that gives a directory the data of a workload, loaded once by all processes of the test run.

    What a changed spec loads otherwise is loaded there.
    """

    def load(dbms: Dbms, workload: Workload, folder: Path) -> None:
        folder.mkdir(mode=0o711)
        for parent in (folder.parent, shared, shared.parent):  # users of servers have to get here
            parent.chmod(parent.stat().st_mode | 0o011)
        prepare_snapshot(dbms, workload, {}, folder)

    def place(dbms: Dbms, workload: Workload, scratch: Path) -> Snapshot:
        (shared / "loaded").mkdir(exist_ok=True)
        loaded = studies.make_once(shared / "loaded" / dbms.name, lambda folder: load(dbms, workload, folder))
        subprocess.run(["cp", "-a", loaded / "snapshots", scratch], check=True)
        return prepare_snapshot(dbms, workload, {}, scratch)

    return place


@pytest.fixture(scope="session")
def finished_small(shared: Path) -> Path:
    """A folder with the finished study `small`, to be read only; a shell would misread its name."""
    odd = 'it\'s "odd" ü $(touch EXECUTED) `touch EXECUTED`;&'  # blanks, quotes, a letter beyond ASCII, commands
    return studies.make_once(shared / odd, studies.finish_small)


@pytest.fixture(scope="session")
def device_profile(finished_small: Path) -> Path:
    """The profile of the shipped device, measured once."""
    return finished_small / "results/small/devices/local-disk.json"


@pytest.fixture(scope="module")
def small_study(finished_small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished study `small`, for the tests of one file to change."""
    copy = tmp_path_factory.mktemp("small") / finished_small.name
    subprocess.run(["cp", "-a", finished_small, copy], check=True)  # some of it belongs to the user of the servers
    return copy


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory on a disk that every user can reach; a test's own temporary directory is closed to others."""
    directory = Path(tempfile.mkdtemp(prefix="knobscope-test-", dir="/var/tmp"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDevice]:
    """A small emulated device, open."""
    require_loops()
    images = tmp_path_factory.mktemp("images")
    emulation = Emulation(image_directory=str(images), size="192MiB")
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    with open_device(device, images, "study") as opened:
        yield opened
    take_down(device, images)


@pytest.fixture
def prints(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that calls a command with words, which has to succeed, and gives what it printed."""

    def call(*words: object) -> str:
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def refuses(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that calls a command with words, which are wrong input, and gives what it says of them."""

    def call(*words: object) -> str:
        assert main([str(word) for word in words]) == 2
        return capsys.readouterr().err

    return call

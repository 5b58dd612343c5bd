"""A full file system of a DBMS's data, while a run goes and while data is loaded: the environment's fault."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated import require_loops
from shipped_specs import shipped_dbms
from test_full_tmpdir import fill
from test_other_generators import measure

from knobscope.errors import UserError
from knobscope.generators import CommandRun
from knobscope.servers import Instance
from knobscope.specs import Dbms
from knobscope.stages.prepare import snapshot

pytestmark = pytest.mark.real


@pytest.fixture
def small_data(open_directory: Path) -> Iterator[Path]:
    """A file system of 300 MiB on a loop device of its own."""
    require_loops()
    folder, image = open_directory / "small", open_directory / "image"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    folder.chmod(0o711)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("name", [pytest.param("postgresql", marks=pytest.mark.long), "redis"])
def test_data_that_found_no_space_in_a_run_is_a_disturbance(
    postgresql: Dbms, small_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    begin = CommandRun.wait_measuring

    def wait_measuring(self: CommandRun, timeout: float) -> int:
        fill(small_data)
        return begin(self, timeout)

    monkeypatch.setattr(CommandRun, "wait_measuring", wait_measuring)
    if name == "postgresql":
        run = measure(postgresql, "pgbench-tpcb", small_data, {"synchronous_commit": "off"})["run"]
    else:
        run = measure(shipped_dbms("redis"), "redis-set", small_data, {"appendfsync": "always"})["run"]
    assert run["status"] != "ok", run
    assert "no space left" in run["disturbance"] or "the file system of the data has" in run["disturbance"], run


@pytest.mark.parametrize("name", ["postgresql", pytest.param("redis", marks=pytest.mark.long)])
def test_data_that_found_no_space_while_it_was_loaded_is_no_refusal(
    postgresql: Dbms, small_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What a DBMS refuses is a result of its configuration; this call has to be repeated."""
    read_version = snapshot.read_version

    def fill_and_read(instance: Instance) -> str:
        fill(small_data)
        return read_version(instance)

    monkeypatch.setattr(snapshot, "read_version", fill_and_read)
    with pytest.raises(
        UserError, match=r"was disturbed from outside .*(no space left|the file system of the data has)"
    ):
        if name == "postgresql":
            measure(postgresql, "pgbench-tpcb", small_data, {})
        else:
            measure(shipped_dbms("redis"), "redis-set", small_data, {})
    assert not list((small_data / "snapshots").glob("*/snapshot.json"))

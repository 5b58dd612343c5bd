"""A generator that writes more than is kept of its output: the run is invalid, with the limit in its reason."""

from pathlib import Path

import pytest
from test_other_generators import measure

from knobscope.generators import CommandRun, command_run
from knobscope.generators.parsers import pgbench
from knobscope.specs import Dbms

pytestmark = pytest.mark.real


def test_pgbench_prints_more_than_the_limit(
    postgresql: Dbms, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = CommandRun.wait_measuring

    def wait_measuring(self: CommandRun, timeout: float) -> int:
        monkeypatch.setattr(command_run, "MOST_BYTES", 1 << 10)  # not while data is loaded
        return begin(self, timeout)

    monkeypatch.setattr(CommandRun, "wait_measuring", wait_measuring)
    run = measure(postgresql, "pgbench-tpcb", open_directory, {})["run"]
    assert run["status"] == "invalid", run
    assert run["reason"].startswith("pgbench printed more than 0 MiB, the limit of what is kept of its output")


@pytest.mark.long
def test_pgbench_logs_more_than_the_limit(
    postgresql: Dbms, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgbench, "_MOST_LOG_BYTES", 1 << 10)
    run = measure(postgresql, "pgbench-tpcb", open_directory, {})["run"]
    assert run["status"] == "invalid", run
    assert "its log is larger than 0 MiB; shorten `measure_s`" in run["reason"]

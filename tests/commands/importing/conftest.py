"""What tests of the import share."""

from pathlib import Path
from typing import Any

import pytest
from tables_of_runs import BASELINES, HEADER, Import, Refuse, problems

from knobscope.cli import main


@pytest.fixture
def import_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Return a function that imports lines as study `theirs`."""
    monkeypatch.chdir(tmp_path)

    def run(*lines: str, header: str = HEADER, more: tuple[str, ...] = ()) -> int:
        table = [header, *lines]
        if "baseline" not in header:
            knobs = [BASELINES.get(line.split(",")[5], "") if line.count(",") > 5 else "" for line in lines]
            table = [f"{header},baseline", *(f"{line},{knob}" for line, knob in zip(lines, knobs, strict=True))]
        (tmp_path / "runs.csv").write_text("\n".join(table) + "\n")
        return main(["import", "runs.csv", "--study", "theirs", *more])

    return run


@pytest.fixture
def refuse(import_table: Import, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Return a function that imports lines in vain, and gives the problems that it printed."""

    def run(*lines: str, **options: Any) -> list[str]:
        assert import_table(*lines, **options) == 2
        return problems(capsys)

    return run

"""`knobscope init` adds what is missing, and says so in plain text."""

from pathlib import Path

import pytest

from knobscope.cli import main


def test_a_second_call_adds_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "studies"
    assert main(["init", str(folder)]) == 0
    (folder / "specs/dbms/redis.yaml").unlink()
    capsys.readouterr()
    assert main(["init", str(folder)]) == 0
    assert f"{folder}: wrote 1 file, kept " in capsys.readouterr().err

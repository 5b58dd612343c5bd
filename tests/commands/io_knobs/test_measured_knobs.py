"""`knobscope io-knobs --measure` on real SQLite: what changes the I/O, what it costs, and going on after a kill."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studies import make_folder, place_profile, write_study

STUDY = """
name: pairs
description: two knobs that steer I/O, and one that steers nothing
dbms: [sqlite]
devices: [local-disk]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.5}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    journal_mode: {values: [delete, wal]}
    recursive_triggers:
sampling: {runs_per_round: 4, max_rounds: 1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_study(make_folder(tmp_path), "pairs", STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run_says_what_it_costs(folder: Path, prints: Callable[..., str]) -> None:
    """Four runs of the default, and at most four pairs for each of three values and their reference."""
    assert prints("io-knobs", "pairs", "--measure", "-n") == (
        "sqlite/local-disk/ycsb-a: 3 knobs with 3 values to try; at most 20 runs, about 42 s\n"
    )
    assert "at most 7 runs" in prints("io-knobs", "pairs", "--measure", "-n", "--runs", "7")
    assert not (folder / "results").exists()


def test_a_budget_of_no_runs_is_refused(folder: Path, refuses: Callable[..., str]) -> None:
    assert "--runs is 0; expected at least 1" in refuses("io-knobs", "pairs", "--measure", "--runs", "0")


@pytest.mark.real
@pytest.mark.long
def test_what_changes_the_io_is_found_and_nothing_is_measured_twice(folder: Path, device_profile: Path) -> None:
    place_profile(folder, device_profile, "pairs")
    command = [sys.executable, "-m", "knobscope", "io-knobs", "pairs", "--measure", "--json"]
    first, again = (
        subprocess.run(command, capture_output=True, text=True, timeout=900, check=True, cwd=folder) for _ in range(2)
    )
    document: dict[str, Any] = json.loads(first.stdout)["measured"]["sqlite/local-disk/ycsb-a"]
    verdicts = {value["knob"]: value["verdict"] for value in document["values"]}
    assert verdicts == {"synchronous": "related", "journal_mode": "related", "recursive_triggers": "none"}
    assert (document["by_runs"], document["unmeasured"]) == ({"precision": 1.0, "recall": 1.0}, 0)
    assert 0 < document["runs"] <= 20
    assert document["seconds"] >= 0.6 * document["runs"]
    assert "0 from the store" in first.stderr
    assert "0 measured now" in again.stderr
    assert json.loads(again.stdout) == json.loads(first.stdout)

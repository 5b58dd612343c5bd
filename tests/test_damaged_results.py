"""A finished study in which files of every kind were damaged: the next call makes them anew, with the same runs."""

import os
import random
from pathlib import Path

import pytest
from studies import call, make_folder, place_profile, query, write_study

STUDY = """
name: tiny
description: the smallest study that has every part
dbms: [sqlite]
devices: [here]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.3}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    cache_size: {values: [-500, -2000]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {threshold: 0.5, top: 1}
sweep: {repeats: 2, always: [synchronous]}
"""
CASE = "sqlite/here/ycsb-a"

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a user's own with a finished study."""
    folder = make_folder(tmp_path_factory.mktemp("study"))
    write_study(folder, "tiny", STUDY)
    place_profile(folder, "tiny")
    call(folder, "tiny")
    return folder


def read_runs(folder: Path) -> set[tuple[str, str, float]]:
    return set(query(folder, "tiny", "SELECT run_id, status, throughput_ops FROM runs"))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def retype(path: Path) -> None:
    path.write_text('["something else"]\n')


DAMAGES = [empty, halve, overwrite, zero, retype]


# Each output meets each damage; one round does so with every output and every damage once, and CI has time for one.
@pytest.mark.parametrize("shift", [0, *(pytest.param(shift, marks=pytest.mark.fleet) for shift in range(1, 5))])
def test_every_kind_of_damaged_output_is_made_anew(finished: Path, shift: int) -> None:
    results = finished / "results/tiny"
    before = read_runs(finished)
    damaged = [
        results / "devices/here.json",
        results / CASE / "fit/0.json",
        results / CASE / "plan/screen-0.parquet",
        results / CASE / "prepared/screen-0.json",
        results / CASE / "runs/screen-0-0/runs.parquet",
    ]
    for number, path in enumerate(damaged):
        DAMAGES[(number + shift) % len(DAMAGES)](path)
    told = call(finished, "tiny")
    for path in damaged:
        assert path.name in told
    assert "0 measured" in told or "from the store" in told
    assert read_runs(finished) == before
    assert "Nothing to be done" in call(finished, "tiny")


def test_a_damaged_run_of_the_store_is_measured_again(finished: Path) -> None:
    stored = sorted((finished / "results/tiny/store").glob("*.json"))
    before = read_runs(finished)
    halve(stored[0])
    for output in ("study.duckdb", *(f"{CASE}/runs/{name}/runs.parquet" for name in ("screen-0-0", "sweep-0-0"))):
        (finished / "results/tiny" / output).unlink()  # so that all runs are looked at again
    told = call(finished, "tiny")
    after = read_runs(finished)
    assert stored[0].name in told
    assert {run[0] for run in after} == {run[0] for run in before}
    assert {run for run in before if run[0] != stored[0].stem} <= after

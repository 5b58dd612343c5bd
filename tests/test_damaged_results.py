"""A finished study in which files of every kind were damaged: the next call makes them anew, with the same runs."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from studies import assert_stays_finished, call, command, query

sys.path.append(str(Path(__file__).parents[1] / "benchmarks/faults"))
from damage import damage_something

CASE = "sqlite/local-disk/ycsb-a"

pytestmark = pytest.mark.real


def read_runs(folder: Path) -> set[tuple[str, str, float]]:
    return set(query(folder, "small", "SELECT run_id, status, throughput_ops FROM runs"))


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


# Each output meets each damage. `make test` damages a profile that has to be measured anyway (`test_study`).
@pytest.mark.long
@pytest.mark.parametrize("shift", range(5))
def test_every_kind_of_damaged_output_is_made_anew(small_study: Path, shift: int) -> None:
    results = small_study / "results/small"
    before = read_runs(small_study)
    damaged = [
        results / CASE / "plan/sweep-0.parquet",
        results / CASE / "fit/0.json",
        results / CASE / "plan/screen-0.parquet",
        results / CASE / "prepared/screen-0.json",
        results / CASE / "runs/screen-0-0/runs.parquet",
        results / "devices/local-disk.json",
    ]
    for number, path in enumerate(damaged):
        DAMAGES[(number + shift) % len(DAMAGES)](path)
    told = call(small_study, "small")
    for path in damaged:
        output = path.parent if path.name == "runs.parquet" else path  # a block is one output
        assert f"{output.name} is damaged" in told
    assert "0 measured" in told or "from the store" in told
    assert read_runs(small_study) == before
    assert "Nothing to be done" in call(small_study, "small")


@pytest.mark.long
def test_whatever_is_damaged_the_report_stays_or_is_made_anew_with_the_same_runs(small_study: Path) -> None:
    """Damages files at random, as `make faults` does in studies that run.

    What nothing needs at the moment is mended by a later call: a run of the store is then measured again.
    """
    results, chance = small_study / "results/small", random.Random(7)
    for _ in range(12):
        before, page = read_runs(small_study), (results / "report.html").read_bytes()
        what = damage_something(small_study, results, chance)
        said = call(small_study, "small")
        assert "Traceback" not in said, what
        if (results / "report.html").read_bytes() != page:
            assert "rule report:" in said, what
        assert read_runs(small_study) == before or "measured again" in said, what
    assert_stays_finished(small_study, "small")


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="root gives its rights away")
@pytest.mark.parametrize("name", ["report.html", "study.duckdb", "devices/local-disk.json"])
def test_an_output_without_rights_is_set_aside_in_one_sentence(small_study: Path, name: str) -> None:
    """Root reads it all the same, unless it has given up its right to."""
    results = small_study / "results/small"
    (results / name).chmod(0)
    dropped = "-dac_override,-dac_read_search"
    done = subprocess.run(
        ["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, *command(small_study, "small")],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count(f"{name} is damaged: it cannot be read (Permission denied)") == 1
    assert "Nothing to be done" in call(small_study, "small")


@pytest.mark.long
def test_a_damaged_run_of_the_store_is_measured_again(small_study: Path) -> None:
    stored = sorted((small_study / "results/small/store").glob("*.json"))
    spoilt = stored[0]
    before = read_runs(small_study)
    halve(spoilt)
    for output in (
        "study.duckdb",
        *(f"{CASE}/runs/{name}/runs.parquet" for name in ("screen-0-0", "sweep-0-0", "sweep-0-1")),
    ):
        (small_study / "results/small" / output).unlink()  # so that all runs are looked at again
    told = call(small_study, "small")
    after = read_runs(small_study)
    assert spoilt.name in told
    assert {run[0] for run in before} <= {run[0] for run in after}
    added = {run[0] for run in after} - {run[0] for run in before}
    beside = query(small_study, "small", "SELECT run_id FROM runs WHERE is_sentinel")
    assert added <= {run_id for (run_id,) in beside}  # whoever measures again measures the default configuration beside
    assert {run for run in before if run[0] != spoilt.stem} <= after

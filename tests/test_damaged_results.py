"""A finished study in which files of every kind were damaged: the next call makes them anew, with the same runs."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from studies import call, command, query

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
@pytest.mark.parametrize("seed", range(int(os.environ.get("KNOBSCOPE_DAMAGES", "12"))))
def test_any_damage_is_mended_by_the_next_call_or_changes_nothing(
    finished_small: Path, tmp_path: Path, seed: int
) -> None:
    """Damages a file at random, as `make faults` does in studies that run; then the study is sound."""
    damage_and_mend(finished_small, tmp_path / "copy", seed)


def damage_and_mend(finished: Path, folder: Path, seed: int) -> str:
    """Fail when a damage of a copy of a finished study is not mended by one call; returns what was damaged.

    What nothing needs at the moment is mended by a later call: a run of the store is then measured again.
    """
    subprocess.run(["cp", "-a", finished, folder], check=True)
    results, before = folder / "results/small", read_runs(folder)
    page = (results / "report.html").read_bytes()
    what = damage_something(folder, results, random.Random(seed))
    said = call_limited(folder) if what.endswith("forbid") else call(folder, "small")
    assert "Traceback" not in said, what
    assert said.count(" is damaged: ") <= (2 if what.endswith("swap") else 1), (what, said)
    if (results / "report.html").read_bytes() != page:
        assert "rule report:" in said, what
    assert read_runs(folder) == before or "measured again" in said, what
    if "Nothing to be done" not in said:
        sound = call(folder, "small", "-n")
        assert "damaged" not in sound, (what, sound)
        assert "Nothing to be done" in sound, (what, sound)
    return what


def call_limited(folder: Path) -> str:
    """Call the study as root that has given up its right to read everything; returns what Snakemake said.

    Where something has to be measured, such a root lacks the data, which belongs to the user of the servers: root with
    all rights calls again then.
    """
    dropped = "-dac_override,-dac_read_search"
    done = subprocess.run(
        ["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, *command(folder, "small")],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if "call as the user who loaded the data" in said:
        assert done.returncode != 0
        return said + call(folder, "small")
    assert done.returncode == 0, said
    return said


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="root gives its rights away")
@pytest.mark.parametrize("name", ["report.html", "study.duckdb", "devices/local-disk.json"])
def test_an_output_without_rights_is_set_aside_in_one_sentence(small_study: Path, name: str) -> None:
    """Root reads it all the same, unless it has given up its right to."""
    results = small_study / "results/small"
    (results / name).chmod(0)
    said = call_limited(small_study)
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

"""What nobody recorded is not taken for none: to know less makes no verdict surer."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from generated_studies import Study, Truth, only_row

from knobscope.durable_files import read_sealed, write_sealed
from knobscope.stages.detect import StudyFiles, build_database

Make = Callable[..., Study]


def forget(study: Study, folder: Path, table: str, kept: str, curves: Sequence[str]) -> Study:
    """Return a study of one device with what is kept of a table of its runs, and of the curves of its profile."""
    (original,) = study.files.runs
    results, database = folder / "sim", folder / "study.duckdb"
    shutil.copytree(original, results)
    rows = f"FROM read_parquet('{original / table}.parquet')"
    duckdb.execute(f"COPY (SELECT {kept.format(rows=rows)}) TO '{results / table}.parquet' (FORMAT parquet)")
    profile = results / "devices/nvme.json"
    content = read_sealed(profile)
    known = [point for point in content["curves"] if point["pattern"] in curves]
    write_sealed(profile, {**content, "curves": known})
    files = StudyFiles([results], [results / "plan.parquet"], [], [profile])
    build_database(files, study.specs, database)
    return Study(study.specs, files, database)


WHOLE = ("runs", "* {rows}")
NO_FLUSHES = ("io_profile", "* {rows} WHERE op <> 'flush'")
NO_REQUESTS = ("io_profile", "* {rows} WHERE false")
NO_SIZES = ("io_profile", "* REPLACE (NULL AS bytes) {rows}")
NO_WHOLE_DEVICE = ("queue_depth", "* {rows} WHERE queue >= 0")
NO_CPU = ("runs", "* REPLACE (NULL AS cpu_s) {rows}")
NO_WINDOWS = ("runs", "* REPLACE (NULL AS window_s) {rows}")
READS, WRITES, BOTH = ("randread",), ("randwrite",), ("randread", "randwrite")
#: A device that writes 2,000 times in a second, of the 40,000 that it could, and is busy for 80 % of the time.
UNUSED = {"write_iops": 40000.0, "threads": 16}


@pytest.mark.parametrize(
    ("made", "table", "curves", "verdict", "said"),
    [
        (UNUSED, WHOLE, BOTH, "mismatch", "too few requests in flight"),
        (UNUSED, NO_WINDOWS, BOTH, "insufficient", "the length of its window"),
        (UNUSED, NO_REQUESTS, BOTH, "insufficient", "the number and size of its reads"),
        (UNUSED, NO_WHOLE_DEVICE, BOTH, "insufficient", "no run of the default configuration recorded queue depths"),
        (UNUSED, NO_SIZES, BOTH, "insufficient", "the number and size of its reads"),
        (UNUSED, WHOLE, READS, "insufficient", "has no rate of writes"),
        (UNUSED, WHOLE, WRITES, "insufficient", "has no rate of reads"),
        (UNUSED | {"reads_per_op": 0.01}, WHOLE, WRITES, "mismatch", "too few requests in flight"),  # hardly any reads
        (UNUSED | {"busy": 0.3}, WHOLE, READS, "none", "nothing waits for the device"),
        (UNUSED, NO_FLUSHES, BOTH, "insufficient", "how often it flushes, or how long that takes"),
        (UNUSED | {"write_iops": 2500.0}, NO_FLUSHES, BOTH, "none", "the device is well used"),
    ],
)
def test_what_is_unknown_is_not_unused(
    make_study: Make,
    tmp_path: Path,
    made: dict[str, Any],
    table: tuple[str, str],
    curves: Sequence[str],
    verdict: str,
    said: str,
) -> None:
    row = only_row(forget(make_study(**made), tmp_path, *table, curves).judge("default_profile"))
    assert row.verdict == verdict, row.sentence
    assert said in row.sentence


def test_what_a_listener_passed_on_in_an_unknown_time_is_not_ruled_out(make_study: Make, tmp_path: Path) -> None:
    """That nothing else waited for storage is known per second, or not at all; then counts decide."""
    listener = (("cpu", 20.0), ("network", 950.0))
    truth = {("page", "16"): Truth(-0.4, flushes=1.0, waits=(("network", 480.0),))}
    made = {"noise": 0.006, "repeats": 4, "knobs": ("page",), "cpu_us": 50.0, "sessions": 1, "waits": listener}
    study = make_study(truth=truth, **made)
    known, unknown = (
        one.judge("flush").set_index(["knob", "value"]).loc[("page", "16")]
        for one in (study, forget(study, tmp_path, *NO_WINDOWS, BOTH))
    )
    assert (known["verdict"], unknown["verdict"]) == ("none", "mismatch"), unknown["sentence"]


#: Rule, what it finds where everything is known, what nobody recorded, and what it says then.
CAUSES: list[tuple[str, Truth, dict[str, Any], tuple[str, str], str]] = [
    ("io_size", Truth(-0.4, unaligned=0.4), {"unit_us": 500.0}, NO_FLUSHES, "how often it flushes"),
    ("io_sequentiality", Truth(-0.4, cpu=0.4, write_run=0.4), {"threads": 1}, NO_FLUSHES, "how often it flushes"),
    ("io_sequentiality", Truth(-0.4, cpu=0.4, read_run=0.4), {"threads": 1}, NO_WINDOWS, "how much is read in order"),
    ("flush", Truth(-0.7, flushes=1.0), {}, NO_CPU, "no CPU time was recorded"),
]


@pytest.mark.parametrize(("rule", "truth", "made", "table", "said"), CAUSES)
def test_what_may_be_the_cause_and_was_not_recorded_is_no_other_cause(
    make_study: Make,
    tmp_path: Path,
    rule: str,
    truth: Truth,
    made: dict[str, Any],
    table: tuple[str, str],
    said: str,
) -> None:
    quiet = {"noise": 0.006, "share_noise": 0.003, "repeats": 6, "knobs": ("page",)}
    study = make_study(truth={("page", "16"): truth}, **quiet, **made)
    known, unknown = (
        one.judge(rule).set_index(["knob", "value"]).loc[("page", "16")]
        for one in (study, forget(study, tmp_path, *table, BOTH))
    )
    assert (known["verdict"], unknown["verdict"]) == ("mismatch", "insufficient"), unknown["sentence"]
    assert said in unknown["sentence"]

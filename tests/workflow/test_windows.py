"""What a dry run says about the number of operations in a window."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import studies

from knobscope.durable_files import write_sealed
from knobscope.specs import StudySpecs, load_study
from knobscope.tables import write_table
from knobscope.workflow.windows import describe_windows

RESULTS = Path("results")


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudySpecs:
    """A study of a modelled disk, of a directory about which nothing is known, and of two workloads."""
    text = studies.SMALL.replace("devices: [local-disk]", "devices: [hdd-7200, local-disk]")
    text = text.replace("measure_s: 0.5}", "measure_s: 3}\n  ycsb-c: {records: 300, measure_s: 3}")
    studies.write_study(studies.make_folder(tmp_path), "small", text)
    monkeypatch.chdir(tmp_path)
    return load_study(Path("specs/studies/small.yaml"), tmp_path, runnable=False)


def describe(specs: StudySpecs) -> list[str]:
    return [line.replace("\u00a0", " ") for line in describe_windows(specs, RESULTS)]


def write_runs(study: str, block: str, *runs: dict[str, Any], case: str = "sqlite/hdd-7200/ycsb-a") -> Path:
    path = RESULTS / study / case / "runs" / block / "runs.parquet"
    path.parent.mkdir(parents=True)
    default = {"is_sentinel": True, "status": "ok"}
    write_table(path, "runs", [{**default, **run} for run in runs])
    return path


def test_the_model_of_a_device_bounds_what_waits_for_flushes(specs: StudySpecs) -> None:
    assert describe(specs) == [
        "sqlite/hdd-7200/ycsb-a: a flush after 4 KiB takes about 8.3 ms on hdd-7200: in a window of 3 s each client "
        "thread completes about 360 operations at most that wait for one"
    ]


def test_a_flush_that_fills_a_unit_takes_as_long_as_both(specs: StudySpecs, tmp_path: Path) -> None:
    """The flush of slow-unit takes 0.1 ms, and filling a unit 1 ms."""
    study = Path(f"specs/studies/{specs.study.name}.yaml")
    study.write_text(study.read_text().replace("[hdd-7200, local-disk]", "[slow-unit]"))
    (line,) = describe(load_study(study, tmp_path, runnable=False))
    assert "takes about 1.1 ms on slow-unit: in a window of 3 s each client thread completes about 2,727" in line


def test_a_device_that_was_measured_is_known_better(specs: StudySpecs) -> None:
    for study, device, flush_us in (("other", "local-disk", 1000.0), ("small", "hdd-7200", 20_000.0)):
        file = RESULTS / study / f"devices/{device}.json"
        file.parent.mkdir(parents=True)
        write_sealed(file, {"device": device, "method": {}, "properties": [], "curves": [], "flush_p50_us": flush_us})
    disk, directory = describe(specs)
    assert "takes about 20 ms on hdd-7200: in a window of 3 s each client thread completes about 150" in disk
    assert "takes about 1 ms on local-disk: in a window of 3 s each client thread completes about 3,000" in directory


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (900.0, "a window of 2 s will hold about 1,800 operations"),
        (9000.0, "a window of 1 s will hold about 9,000 operations"),  # four intervals at least
        (55.0, "a window of 3 s will hold about 165 operations"),
    ],
)
def test_operations_end_a_window_early(specs: StudySpecs, rate: float, expected: str) -> None:
    workload = specs.workloads["ycsb-a"].model_copy(update={"measure_operations": 1800})
    write_runs("small", "sweep-0-0", {"throughput_ops": rate})
    specs = replace(specs, workloads={**specs.workloads, "ycsb-a": workload})
    assert expected in describe(specs)[0]


def test_runs_of_the_default_configuration_say_how_many_there_were(specs: StudySpecs) -> None:
    slow, quick, failed = ({"throughput_ops": rate} for rate in (55.0, 900.0, None))
    other = write_runs("other", "sweep-0-0", slow, {**quick, "is_sentinel": False}, {**failed, "status": "failed"})
    expected = (
        "sqlite/hdd-7200/ycsb-a: a window of 3 s will hold about 165 operations: the default configuration had 55 ops/s"
    )
    assert describe(specs) == [f"{expected} in the results of other"]
    own = write_runs("small", "sweep-0-0", {"throughput_ops": 60.0}, {"throughput_ops": 80.0})
    os.utime(own, (0, 0))  # older than that of the other study
    assert "will hold about 210 operations" in describe(specs)[0]
    own.write_bytes(own.read_bytes()[:50])
    other.unlink()
    assert describe(specs)[0].startswith("sqlite/hdd-7200/ycsb-a: a flush after 4 KiB takes about 8.3 ms")

"""What rules say of studies with known truth, and the report of it, does not contradict itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from contradictions import find_contradictions
from generated_studies import Study, Truth

from knobscope.stages.detect import run_rules, write_findings

WAITS = (("flush", 600.0), ("write", 100.0), ("read", 150.0), ("cpu", 100.0), ("network", 50.0))
FASTER = {
    ("page", "16"): Truth(throughput=0.8, flushes=-0.9, waits=(("flush", -500.0),)),
    ("buffer", "2"): Truth(throughput=-0.3, unaligned=0.3, writes=0.5, write_run=0.4, cpu=0.3),
}
CASES: dict[str, dict[str, Any]] = {
    "by waits": {"waits": WAITS, "flushes": 1.0, "columns": {"latency_mean_us": 2000.0}},
    "by counts": {"flushes": 1.0, "flush_us": 500.0, "unit_us": 300.0},
    "one at a time": {"depth_one": 0.99, "threads": 16, "waits": WAITS, "busy": 0.9},
    "busy with flushes": {"flushes": 1.0, "flush_us": 900.0, "busy": 0.9, "cpu_us": 50.0, "threads": 1},
    "reads": {"reads_per_op": 2.0, "read_us": 400.0, "interference": 0.5},
    "noise": {"noise": 0.2, "waits": WAITS},
}


@pytest.mark.slow
@pytest.mark.parametrize("devices", [("hdd", "nvme"), ("nvme",)])
def test_no_verdict_contradicts_another_sentence_of_its_report(
    make_study: Callable[..., Study], tmp_path: Path, devices: tuple[str, ...]
) -> None:
    for number, (name, fields) in enumerate(CASES.items()):
        study = make_study(devices=devices, truth=FASTER, repeats=3, seed=number, **fields)
        database = tmp_path / f"{number}.duckdb"
        database.write_bytes(study.database.read_bytes())
        with duckdb.connect(str(database), read_only=True) as connection:
            findings = run_rules(connection, study.specs)
        write_findings(database, findings)
        assert find_contradictions(database, study.specs) == [], name

"""What screening explains: knobs are ranked by throughput, or by a latency where the study says so."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from studies import make_folder

from knobscope.cli import main
from knobscope.durable_files import read_sealed
from knobscope.specs import Case, SpecErrors, load_study
from knobscope.stages.plan import plan_screening
from knobscope.tables import write_table

ROOT = Path(__file__).parents[3]
CASE = Case("sqlite", "local-disk", "ycsb-a")
STUDY = {
    "name": "tails",
    "description": "ranks by a latency",
    "dbms": ["sqlite"],
    "devices": ["local-disk"],
    "workloads": {"ycsb-a": {"records": 300}},
    "knobs": {"sqlite": {"synchronous": None, "temp_store": None, "cache_size": {"values": [-500, -2000, -8000]}}},
    "sampling": {"runs_per_round": 40, "max_rounds": 1},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


def write_study(project: Path, **screening: Any) -> Path:
    path = project / "specs/studies/tails.yaml"
    path.write_text(yaml.safe_dump({**STUDY, "screening": screening}))
    return path


def select(project: Path, response: str, failing: Mapping[str, Any] | None = None, **figures_of: Any) -> dict[str, Any]:
    """Return the fit of runs in which throughput goes by `synchronous` and the tail of the latency by `cache_size`.

    All with the values of `failing` fail; `figures_of` replaces figures of all runs.
    """
    study = write_study(project, response=response, model="anova")
    rows = plan_screening(load_study(study, project, runnable=False), CASE, 0)
    write_table(project / "screen-0.parquet", "plan", rows)
    rng, runs = np.random.default_rng(3), []
    for row in rows:
        knobs = json.loads(row["configuration"])
        names = ("config_id", "block_id", "round", "is_sentinel")
        about = {"status": "ok", "session": "one", "started_at": datetime(2026, 11, 28), "dbms_version": "3.46.1"}
        slow = 3.0 if knobs["cache_size"] == -500 else 1.0
        figures = {
            "throughput_ops": (2000.0 if knobs["synchronous"] == "off" else 1000.0) * np.exp(rng.normal(0, 0.02)),
            "latency_p99_us": 5000.0 * slow * np.exp(rng.normal(0, 0.02)),
        }
        if failing and all(knobs[name] == value for name, value in failing.items()):
            about["status"] = "failed_start"
        runs.append({**{name: row[name] for name in names}, **about, **figures, **figures_of})
    runs[5]["latency_p99_us"] = None  # a run without it is no run for this response
    write_table(project / "block/runs.parquet", "runs", runs)
    out = project / f"{response}.json"
    files = ["--plans", str(project / "screen-0.parquet"), "--runs", str(project / "block"), "--out", str(out)]
    arguments = ["select", "--study", str(study), "--root", str(project), "--case", str(CASE), "--round", "0", *files]
    assert main(arguments) == 0
    return read_sealed(out)


def test_knobs_are_ranked_by_the_response_of_the_study(project: Path) -> None:
    by_throughput, by_tail = select(project, "throughput"), select(project, "latency_p99")
    assert "nothing is known" not in by_throughput["reason_trust"]
    assert by_throughput["importance"][0]["knob"] == "synchronous"
    assert by_tail["importance"][0]["knob"] == "cache_size"
    assert by_throughput["runs"] - by_tail["runs"] == 1
    # The best value of a knob is the one with the shortest latency, and predictions are told in microseconds.
    (gain,) = (row for row in by_tail["tunability"]["knobs"] if row["knob"] == "cache_size")
    assert gain["gain"] > -0.1
    assert all(3000 < row["measured"] < 20000 for row in by_tail["worst_predicted"])
    assert all(500 < row["measured"] < 3000 for row in by_throughput["worst_predicted"])


def test_nothing_is_said_of_a_value_with_which_all_runs_fail(project: Path) -> None:
    fit = select(project, "throughput", failing={"temp_store": "memory"})
    assert fit["reason_trust"].endswith(
        "nothing is known of temp_store = memory, with which no configuration succeeded"
    )


def test_runs_that_do_not_tell_the_response_are_no_failed_ones(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        select(project, "latency_p99", latency_p99_us=None)
    assert "runs of sqlite/local-disk/ycsb-a succeeded, but none tells its" in capsys.readouterr().err


def test_a_prior_ranks_by_throughput_alone(project: Path) -> None:
    (project / "models").symlink_to(ROOT / "models")
    study = write_study(project, response="latency_p95", prior="redis-all")
    with pytest.raises(SpecErrors, match="found latency_p95; expected throughput, by which priors rank"):
        load_study(study, project, runnable=False)

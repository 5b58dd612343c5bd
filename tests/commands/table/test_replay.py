"""`knobscope replay` on generated grids with known truth, and on tables that others measured."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_tables import grid, known_grid, measured

from knobscope.commands.table import replay
from knobscope.errors import UserError
from knobscope.stages.plan import SAMPLERS
from knobscope.statistics.design import Settings
from knobscope.statistics.holding_out import r_squared
from knobscope.statistics.stopping import Runs, decide_stop


def run(table: Path, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    replay.add_parser(parser.add_subparsers())
    out = tmp_path / "out.json"
    args = parser.parse_args(["replay", str(table), "--json", str(out), "--jobs", "1", *arguments])
    assert args.run(args) == 0
    return json.loads(out.read_text())  # type: ignore[no-any-return]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "grid.csv"
    known_grid().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("sampling", list(SAMPLERS))
def test_every_sampling_method_stops_and_is_right(table: Path, tmp_path: Path, sampling: str) -> None:
    result = run(table, tmp_path, "--response", "y", "--trials", "2", "--model", "anova", "--sampling", sampling)
    assert result["factors"] == ["page", "flush", "cache", "log", "idle", "other"]
    assert (result["rows"], result["sampling"], result["model"]) == (432, sampling, "anova")
    for trial in result["trials"]:
        assert trial["stopped"] and trial["r2_unsampled"] > 0.85  # below it, a false stop
        assert trial["runs"] == round(trial["rate"] * 432)
        assert len(trial["r2_splits"]) == 10 and min(trial["r2_splits"]) >= 0.9
    assert any("flush:cache" in trial["terms"] for trial in result["trials"])  # without it R2 stays below .9
    assert result["summary"]["rate_median"] <= 0.3


def test_a_fit_is_held_against_the_settings_that_were_never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against those that it was fitted to, or against all, it looks better than it is."""
    table = known_grid()
    settings, response = Settings.from_frame(table, list(table.columns[:-1])), table.y.to_numpy()
    taken: list[float] = []
    held: list[np.ndarray] = []

    def decide(runs: Runs, *arguments: Any, **options: Any) -> Any:
        taken[:] = runs.response
        return decide_stop(runs, *arguments, **options)

    def score(actual: np.ndarray, predicted: np.ndarray) -> float:
        held[:] = [actual, predicted]
        return r_squared(actual, predicted)

    monkeypatch.setattr(replay, "decide_stop", decide)
    monkeypatch.setattr(replay, "r_squared", score)
    trial = replay.run_trial(settings, response, replay.Plan(model="anova", sampling="random"), 0)
    assert trial["stopped"] and len(taken) == trial["runs"] < len(response)
    assert sorted([*taken, *held[0]]) == sorted(response)
    assert trial["r2_unsampled"] == r_squared(*held)


def test_looks_follow_one_another_closely_or_at_the_shares_that_were_given() -> None:
    assert list(replay.Plan().sizes(100)) == [30, 35, 40, 45, 50, 55, 60, 66, 72, 79, 86, 94, 100]
    assert list(replay.Plan().sizes(20)) == [20]
    assert list(replay.Plan(start=0.1, step=0.3).sizes(972)) == [97, 389, 680, 972]
    assert list(replay.Plan(stop="stability").sizes(972))[:3] == [49, 97, 146]


@pytest.mark.slow
def test_same_seed_same_result_whatever_the_number_of_processes(table: Path, tmp_path: Path) -> None:
    arguments = ["--response", "y", "--trials", "2", "--step", ".2", "--model", "anova"]
    once = run(table, tmp_path, *arguments)
    assert once == run(table, tmp_path, *arguments, "--jobs", "2")
    first, second = once["trials"]
    assert first != second


@pytest.mark.long
def test_stability_of_conclusions_is_another_reason_to_stop(table: Path, tmp_path: Path) -> None:
    r2, stability, both = (
        run(table, tmp_path, "--response", "y", "--trials", "3", "--stop", rule) for rule in ("r2", "stability", "both")
    )
    for early, stable, late in zip(r2["trials"], stability["trials"], both["trials"], strict=True):
        assert stable["stopped"] and "conclusions have been the same for 3 of 3 rounds" in stable["reason"]
        assert late["rate"] >= max(early["rate"], stable["rate"])
        assert {"page", "flush:cache"} <= {t["term"] for t in stable["explained"] if t["explained_share"] >= 0.05}


@pytest.mark.slow
def test_noise_has_no_conclusions_to_be_stable(tmp_path: Path) -> None:
    flat = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2, 3, 4])
    flat["y"] = np.random.default_rng(1).uniform(100, 110, len(flat))
    flat.to_csv(tmp_path / "flat.csv", index=False)
    arguments = ["--response", "y", "--trials", "5", "--stop", "stability", "--model", "anova"]
    result = run(tmp_path / "flat.csv", tmp_path, *arguments)
    assert sum(trial["stopped"] for trial in result["trials"]) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("model", ["anova", pytest.param("auto", marks=pytest.mark.long)])
def test_noise_never_stops_and_says_why(model: str, tmp_path: Path) -> None:
    flat = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2, 3, 4])
    flat["y"] = np.random.default_rng(1).uniform(100, 110, len(flat))
    flat.to_csv(tmp_path / "flat.csv", index=False)
    arguments = ["--response", "y", "--trials", "2", "--step", ".19", "--model", model]
    result = run(tmp_path / "flat.csv", tmp_path, *arguments)
    assert not any(trial["stopped"] for trial in result["trials"])
    assert all("not predictable" in trial["reason"] and "noise" in trial["reason"] for trial in result["trials"])
    assert result["summary"]["rate_median"] is None


@pytest.mark.slow
def test_replicates_come_together_and_show_the_noise(tmp_path: Path) -> None:
    rows = pd.concat([known_grid(noise=0.8, seed=seed) for seed in range(3)])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    result = run(
        tmp_path / "rows.csv", tmp_path, "--response", "y", "--trials", "2", "--step", ".3", "--log", "--model", "anova"
    )
    assert (result["rows"], result["settings"]) == (1296, 432)
    for trial in result["trials"]:
        assert not trial["stopped"] and trial["runs"] == 1296
        assert "noise explains" in trial["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--response", "z"], "no column 'z'"),
        (["--response", "y", "--factors", "page,nothing"], "--factors: found no column 'nothing'"),
        (["--response", "y", "--factors", "y,page"], "is the response"),
        (["--response", "y", "--ignore", "y"], "--ignore: found 'y', which is the response"),
        (["--response", "y", "--factors", "page,flush", "--ignore", "page"], "'page', which --factors names as a knob"),
        (["--response", "y", "--start", "0"], "--start is 0"),
        (["--response", "y", "--trials", "0"], "--trials is 0"),
        (["--response", "y", "--jobs", "0"], "--jobs is 0"),
        (["--response", "y", "--stable-rounds", "1"], "--stable-rounds is 1"),
    ],
)
def test_wrong_arguments_are_explained(table: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(table, tmp_path, *arguments)


def test_missing_and_empty_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        run(tmp_path / "absent.csv", tmp_path, "--response", "y")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(UserError, match="found an empty file"):
        run(tmp_path / "empty.csv", tmp_path, "--response", "y")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "response", "ignore", "median"),
    [
        ("mysql_5.6.26_grid.csv", "runtime", "rel_sd_of_5", 0.10),
        pytest.param("berkeleydb_c_grid.csv", "y", "", 0.05, marks=pytest.mark.long),
        ("storm_wordcount.csv", "throughput", "latency", 0.175),
    ],
)
def test_stop_rates_on_measured_grids(name: str, response: str, ignore: str, median: float, tmp_path: Path) -> None:
    more = ["--ignore", ignore] if ignore else []
    more += ["--model", "anova", "--sampling", "random", "--start", ".05", "--step", ".05"]
    result = run(measured(name), tmp_path, "--response", response, "--trials", "20", *more)
    assert abs(result["summary"]["rate_median"] - median) <= 0.051
    assert all(trial["stopped"] and trial["r2_unsampled"] >= 0.85 for trial in result["trials"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "response", "ignore", "most"),
    [
        pytest.param("mysql_5.6.26_grid.csv", "runtime", "rel_sd_of_5", 0.6 * 97, marks=pytest.mark.long),
        pytest.param("storm_wordcount.csv", "throughput", "latency", 0.6 * 269, marks=pytest.mark.long),
        pytest.param("berkeleydb_c_grid.csv", "y", "", 128, marks=pytest.mark.long),
    ],
)
def test_the_default_needs_fewer_runs(name: str, response: str, ignore: str, most: float, tmp_path: Path) -> None:
    more = ["--ignore", ignore] if ignore else []
    result = run(measured(name), tmp_path, "--response", response, "--trials", "3", *more)
    assert result["summary"]["runs_median"] <= most
    assert all(trial["stopped"] and trial["r2_unsampled"] >= 0.85 for trial in result["trials"])

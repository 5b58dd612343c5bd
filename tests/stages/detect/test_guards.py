"""Runs that cannot be believed are set aside before anything is compared: none of good studies, all of damaged ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generated_studies import Study, StudyMaker, Truth

from knobscope.stages.detect import build_database
from knobscope.stages.detect.guards import find_copied_runs, find_damaged_series
from knobscope.statistics.series import Series
from knobscope.statistics.steadiness import summarise_window
from knobscope.tables import read_table, write_tables

Rows = list[dict[str, Any]]
#: What a copy takes over; who ran where, when and with which configuration stays.
FIGURES = ("window_s", "operations", "throughput_ops", "latency_p95_us", "latency_p99_us", "cpu_s")


def intervals_of(run: dict[str, Any], rng: np.random.Generator, count: int = 20) -> Rows:
    """A series whose operations add up to about those of the run."""
    ops = rng.poisson(run["operations"] / count * np.exp(rng.normal(0, 0.05, count)))
    factors = np.exp(rng.normal(0, 0.05, (2, count)))
    return [
        {
            "run_id": run["run_id"],
            "t_s": (index + 1) * run["window_s"] / count,
            "ops": int(ops[index]),
            "failed": 0,
            "latency_p95_us": round(run["latency_p95_us"] * factors[0, index]),
            "latency_p99_us": round(run["latency_p99_us"] * factors[1, index]),
        }
        for index in range(count)
    ]


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[..., Study]:
    """Return a function that makes a study with intervals, lets another one damage its rows, and builds its database.

    `damage` gets the rows of table `runs` and the intervals by run, and may change both.
    """

    def make(damage: Callable[[Rows, dict[str, Rows]], None], **fields: Any) -> Study:
        maker = StudyMaker(tmp_path, repeats=3, **fields)
        specs = maker.specs()
        files = maker.files(specs)
        runs = read_table([files.runs[0] / "runs.parquet"]).to_dict("records")
        rng = np.random.default_rng(9)
        intervals = {run["run_id"]: intervals_of(run, rng) for run in runs}
        damage(runs, intervals)
        rows = [row for series in intervals.values() for row in series]
        write_tables(files.runs[0], {"runs": runs, "intervals": rows})
        build_database(files, specs, tmp_path / "study.duckdb")
        return Study(specs, files, tmp_path / "study.duckdb")

    return make


def set_aside(study: Study) -> dict[str, str]:
    """Run -> guard, but for whole blocks; what the tables say of these runs has to agree."""
    found = study.query(
        "SELECT s.*, status, r.reason AS told FROM set_aside_runs s JOIN runs r USING (run_id) WHERE guard <> 'block'"
    )
    assert (found["status"] == "invalid").all()
    assert (found["reason"] == found["told"]).all()
    return dict(zip(found["run_id"], found["guard"], strict=True))


def swept(runs: Rows) -> list[int]:
    """Indices of runs that change a knob, in the order of their blocks."""
    return [index for index, run in enumerate(runs) if not run["is_sentinel"]]


def test_a_good_study_loses_no_run(damaged: Callable[..., Study]) -> None:
    study = damaged(lambda runs, intervals: None, devices=("nvme", "hdd"))
    assert set_aside(study) == {}
    assert study.query("SELECT count(*) FILTER (status = 'ok') = count(*) AS all_ok FROM runs")["all_ok"].all()
    assert not study.query("FROM blocks")["other_level"].any()


def test_a_run_that_is_there_twice_counts_once(damaged: Callable[..., Study]) -> None:
    """The same configuration in two blocks: the first of the two stays."""
    names: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        first = runs[swept(runs)[2]]
        copy = next(run for run in runs if run["config_id"] == first["config_id"] and run is not first)
        copy |= {name: first[name] for name in FIGURES}
        intervals[copy["run_id"]] = [{**row, "run_id": copy["run_id"]} for row in intervals[first["run_id"]]]
        names[:] = [first["run_id"], copy["run_id"]]

    study = damaged(damage)
    assert set_aside(study) == {names[1]: "copied"}
    assert study.query("SELECT twin_run_id FROM set_aside_runs")["twin_run_id"].tolist() == [names[0]]


def test_of_two_configurations_with_the_same_figures_neither_counts(damaged: Callable[..., Study]) -> None:
    names: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        first, second = (runs[index] for index in swept(runs)[3:5])
        second |= {name: first[name] for name in FIGURES}
        intervals[second["run_id"]] = []  # as where a copy lost its series
        names[:] = [first["run_id"], second["run_id"]]

    study = damaged(damage)
    assert set_aside(study) == dict.fromkeys(names, "copied")
    assert (
        study.query("SELECT reason FROM set_aside_runs WHERE guard = 'copied'")["reason"]
        .str.contains("nobody can say whose")
        .all()
    )


def test_a_copied_block_is_no_second_block(damaged: Callable[..., Study]) -> None:
    copied: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        blocks = sorted({run["block_id"] for run in runs})
        twins = [{**run, "block_id": blocks[1], "run_id": run["run_id"] + "-copy"} for run in runs]
        twins = [run for run, original in zip(twins, runs, strict=True) if original["block_id"] == blocks[0]]
        runs[:] = [run for run in runs if run["block_id"] != blocks[1]] + twins
        copied[:] = [run["run_id"] for run in twins]
        for name in list(intervals):
            if name not in {run["run_id"] for run in runs}:
                del intervals[name]

    study = damaged(damage)
    assert set_aside(study) == dict.fromkeys(copied, "copied")
    effects = study.query("SELECT blocks FROM effects WHERE metric = 'throughput_ops'")
    assert effects["blocks"].unique().tolist() == [2]


def test_a_damaged_series_is_found(damaged: Callable[..., Study]) -> None:
    """On each device two runs are damaged in the same way."""
    ways: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
        "nvme-0": ("frozen", lambda rows: [{**rows[0], "t_s": row["t_s"]} for row in rows]),
        "nvme-1": ("frozen", lambda rows: rows[:12] + [{**rows[11], "t_s": row["t_s"]} for row in rows[12:]]),
        "nvme-2": ("truncated", lambda rows: rows[:13]),
        "nvme-3": (
            "silent",
            lambda rows: rows[:12] + [{"run_id": row["run_id"], "t_s": row["t_s"], "ops": 0} for row in rows[12:]],
        ),
    }
    spoiled: dict[str, str] = {}

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        for device, (guard, spoil) in ways.items():
            own = [run for run in runs if run["device"] == device]
            for run in (next(run for run in own if run["is_sentinel"]), own[swept(own)[4]]):
                intervals[run["run_id"]] = spoil(intervals[run["run_id"]])
                spoiled[run["run_id"]] = guard

    assert set_aside(damaged(damage, devices=tuple(ways))) == spoiled


def test_a_value_that_stops_the_system_in_all_its_runs_is_slow_and_not_damaged(damaged: Callable[..., Study]) -> None:
    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        stopping = runs[swept(runs)[1]]["config_id"]
        for run in runs:
            if run["config_id"] == stopping:
                rows = intervals[run["run_id"]]
                rows[8:] = [{"run_id": row["run_id"], "t_s": row["t_s"], "ops": 0} for row in rows[8:]]

    assert set_aside(damaged(damage)) == {}


def test_a_session_on_another_level_keeps_its_effects_and_no_comparison_of_speeds(
    damaged: Callable[..., Study],
) -> None:
    """One block on the faster tier is five times slower than the others; the tier is as fast as the lower one."""
    slow: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        slow[:] = [min(run["block_id"] for run in runs if run["device"] == "nvme")]
        for run in runs:
            if run["block_id"] == slow[0]:
                run["throughput_ops"] /= 5
                run["operations"] //= 5

    truth = {("buffer", "32"): Truth(throughput=0.4)}
    study = damaged(damage, devices=("nvme", "hdd"), truth=truth, block_noise=0.02)
    assert set_aside(study) == {}
    blocks = study.query("FROM blocks")
    assert blocks.loc[blocks["other_level"], "block_id"].tolist() == slow
    assert blocks.loc[blocks["other_level"], "level"].tolist() == pytest.approx([-np.log(5)], abs=0.1)
    assert (blocks["treatment"] != "dropped").all()
    effects = study.query("SELECT * FROM effects WHERE metric = 'throughput_ops' AND knob = 'buffer' AND value = '32'")
    assert effects["estimate"].tolist() == pytest.approx([0.4, 0.4], abs=0.05)
    assert effects["blocks"].tolist() == [3, 3]
    default = study.query("SELECT * FROM level_contrasts WHERE knob IS NULL AND metric = 'throughput_ops'")
    assert default["estimate"].tolist() == pytest.approx([0], abs=0.1)
    assert default["high"].item() - default["low"].item() < 0.5
    behind = study.query("SELECT DISTINCT block_id FROM runs_behind JOIN runs USING (run_id) WHERE knob IS NULL")
    assert slow[0] not in behind["block_id"].tolist()


def draw_runs(rng: np.random.Generator, digits: int | None, noise: float, mean: float) -> tuple[pd.DataFrame, dict]:
    """A case with three blocks of 10 values, as the guards see it; rounded as tables of others are."""
    rows, series = [], {}
    for block in range(3):
        order = rng.permutation(10) + 1
        level = mean * np.exp(rng.normal(0, 0.1))
        for position, setting in enumerate([0, *order[:5], 0, *order[5:], 0]):
            speed = level * np.exp(rng.normal(0, noise) + 0.3 * (setting % 3 == 1))
            run = {"run_id": f"{block}/{position}", "window_s": 20.0, "operations": int(20 * speed)}
            figures = {
                "throughput_ops": int(20 * speed) / 20,
                "latency_mean_us": 4e6 / speed * np.exp(rng.normal(0, noise / 10)),
                "latency_p50_us": np.nan,
                "latency_p95_us": round(8e6 / speed * np.exp(rng.normal(0, noise))),
                "latency_p99_us": round(2e7 / speed * np.exp(rng.normal(0, noise))),
                "cpu_s": round(8 * np.exp(rng.normal(0, noise)), 2),
            }
            if digits is not None:
                figures = {name: float(f"{value:.{digits}g}") for name, value in figures.items()}
                run |= {"window_s": np.nan, "operations": np.nan}
            rows.append(
                {**run, **figures, "dbms": "d", "device": "v", "workload": "w", "session": "one"}
                | {"block_id": f"b{block}", "config_id": str(setting)}
            )
            about = {"run_id": run["run_id"], "window_s": 20.0, "operations": 20 * speed}
            found = intervals_of({**about, "latency_p95_us": 8e6 / speed, "latency_p99_us": 2e7 / speed}, rng, 10)
            figures_of = [[one["ops"], one["latency_p95_us"], one["latency_p99_us"]] for one in found]
            series[run["run_id"]] = Series(np.array([one["t_s"] for one in found]), np.array(figures_of, float))
    return pd.DataFrame(rows), series


@pytest.mark.long
def test_two_hundred_studies_of_noise_lose_no_run() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        digits, noise = [None, 6, 4, 3, 2][seed % 5], [0.002, 0.02, 0.1][seed % 3]
        runs, series = draw_runs(rng, digits, noise, [10, 1000, 30_000][seed // 3 % 3])
        told = series if seed % 2 else {}
        assert [*find_copied_runs(runs, told), *find_damaged_series(runs, told)] == [], seed


def test_a_default_run_that_stalled_is_set_aside_and_counted(damaged: Callable[..., Study]) -> None:
    """Each value is compared with default runs that lack one: all say so, and nothing else uses that run."""
    names: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        stalled = next(run for run in runs if run["is_sentinel"])
        stalled["throughput_ops"] /= 6
        names[:] = [stalled["run_id"]]

    study = damaged(damage)
    assert set_aside(study) == {names[0]: "stalled"}
    lost = study.query("SELECT DISTINCT set_aside, reference_set_aside FROM effects WHERE beside IS NULL")
    assert lost.to_dict("records") == [{"set_aside": 0, "reference_set_aside": 1}]
    assert not study.query(f"FROM runs_behind WHERE run_id = '{names[0]}'").size


def test_runs_of_a_block_that_cannot_be_compared_are_set_aside(damaged: Callable[..., Study]) -> None:
    """Without a default run a block compares nothing: its other runs are as lost as those that failed."""
    blocks: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        blocks[:] = [runs[0]["block_id"]]
        for run in runs:
            if run["block_id"] == blocks[0] and run["is_sentinel"]:
                run |= {"status": "failed_run", "throughput_ops": None}

    study = damaged(damage)
    found = study.query("SELECT guard, block_id, s.reason, status FROM set_aside_runs s JOIN runs USING (run_id)")
    assert found["guard"].unique().tolist() == ["block"]
    assert found["block_id"].unique().tolist() == blocks
    assert found["reason"].str.contains("no successful run of the default configuration").all()
    runs = study.query("FROM runs WHERE status = 'ok'")
    assert len(found) == (runs["block_id"] == blocks[0]).sum() > 0
    assert study.query("SELECT min(set_aside) AS least FROM effects WHERE beside IS NULL")["least"][0] == 1


@pytest.mark.parametrize("pause", ["short", "of one run"])
def test_a_pause_that_no_guard_excludes_is_in_the_sentence_of_the_finding(
    damaged: Callable[..., Study], pause: str
) -> None:
    """Below a third of the window; and in the middle of it, of a configuration with two runs only."""

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        row = runs[swept(runs)[1]]
        same = [run for run in runs if run["config_id"] == row["config_id"]]
        if pause == "of one run":
            runs.remove(same.pop())
        at = slice(5, 9 if pause == "short" else 14)
        intervals[row["run_id"]][at] = [{**one, "ops": 0} for one in intervals[row["run_id"]][at]]
        for run in runs:
            rows = intervals[run["run_id"]]
            run.update(summarise_window([one["t_s"] for one in rows], [one["ops"] for one in rows]))
        paused.append((row["config_id"], len(same), row["window_pause_s"]))

    paused: list[tuple[str, int, float]] = []
    study = damaged(damage)
    assert set_aside(study) == {}
    ((configuration, count, seconds),) = paused
    findings = study.judge("intuition")
    knobs = study.query(f"SELECT DISTINCT knob, value FROM sweep_runs WHERE config_id = '{configuration}'")  # noqa: S608
    ((knob, value),) = knobs.itertuples(index=False)
    is_paused = (findings["knob"] == knob) & (findings["value"] == value)
    words = f"(longest pause {seconds:.3g} s) or changed its speed by 2x or more in 1 of {count} runs with this value "
    words += f"and in 0 of {3 * count} "
    assert findings.loc[is_paused, "sentence"].str.contains(words, regex=False).all()
    assert is_paused.any()
    assert not findings.loc[~is_paused, "sentence"].str.contains("paused").any()


def test_a_default_run_that_paused_is_told_with_mismatches_alone(damaged: Callable[..., Study]) -> None:
    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        for run in runs:
            run.update(window_pause_s=0.0, window_halves=1.0)
        next(run for run in runs if run["is_sentinel"])["window_halves"] = 0.4

    study = damaged(damage, truth={("page", "16"): Truth(throughput=-0.7, flushes=1.0)}, noise=0.006)
    findings = study.judge("flush")
    words = r"changed its speed by 2x or more in 0 of \d runs with this value and in 1 of \d that"
    assert findings["sentence"].str.contains(words).equals(findings["verdict"] == "mismatch")
    assert set(findings["verdict"]) > {"mismatch"}


def test_a_silent_middle_of_a_window_is_set_aside(damaged: Callable[..., Study]) -> None:
    """The load came back: the whole window looks like a slow run, and the series says why."""
    names: list[str] = []

    def damage(runs: Rows, intervals: dict[str, Rows]) -> None:
        names[:] = [runs[swept(runs)[4]]["run_id"]]
        rows = intervals[names[0]]
        rows[6:14] = [{**row, "ops": 0} for row in rows[6:14]]

    study = damaged(damage)
    assert set_aside(study) == {names[0]: "silent"}
    reason = study.query("SELECT reason FROM set_aside_runs WHERE guard = 'silent'")["reason"].item()
    assert reason == "no operation ends in 8 of 20 intervals in a row"

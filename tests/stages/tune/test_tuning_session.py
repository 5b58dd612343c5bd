"""Tuners on landscapes that are known: what they ask for, in which order, and that the same results give it again."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from studies import make_folder

from knobscope.errors import UserError
from knobscope.specs import SpecErrors, StudySpecs, load_study
from knobscope.stages.tune import count_runs, make_tuners, tune_case, tuning_blocks
from knobscope.stages.tune.session import _choose_winner, _Trial
from knobscope.tables import CutColumns, TrialRow

ROOT = Path(__file__).parents[3]
STUDY = """
name: tuned
description: knobs with constraints and special values
dbms: [postgresql]
devices: [local-disk]
workloads:
  ycsb-a:
knobs:
  postgresql:
    shared_buffers:
    commit_delay:
    min_wal_size:
    max_wal_size:
    fsync:
    wal_sync_method:
tune: {trials: %(trials)d, seeds: 2, spaces: [top1, all], repeats: 2}
"""
RANKING = ["fsync", "shared_buffers", "commit_delay"]

Row = dict[str, Any]
Result = tuple[list[Row], list[Row], list[Row]]


@pytest.fixture
def specs(tmp_path: Path) -> Callable[..., StudySpecs]:
    make_folder(tmp_path)

    def load(trials: int = 6, **changes: str) -> StudySpecs:
        text = STUDY % {"trials": trials}
        for old, new in changes.items():
            text = text.replace(old, new)
        path = tmp_path / "specs/studies/tuned.yaml"
        path.write_text(text)
        return load_study(path, ROOT, runnable=False)

    return load


def landscape(row: Row) -> Row:
    """Throughput is best with 1,024 pages of shared_buffers; the server does not start with more than 60,000."""
    values = json.loads(row["configuration"])
    run = {"run_id": f"{row['block_id']}/{row['position']}", "status": "ok"}
    if values["shared_buffers"] > 60_000:
        return {"run": {**run, "status": "failed_start", "throughput_ops": None}}
    return {"run": {**run, "throughput_ops": 2000 - 100 * abs(10 - math.log2(values["shared_buffers"]))}}


def tune(specs: StudySpecs) -> Result:
    settings = specs.study.tune
    assert settings is not None
    case = specs.cases[0]
    return tune_case(specs, case, settings, make_tuners(specs, case, settings, RANKING), landscape)


def test_every_trial_is_allowed_and_in_its_space(specs: Callable[..., StudySpecs]) -> None:
    _, plan, trials = tune(specs())
    default = json.loads(plan[0]["configuration"])
    by_id = {row["config_id"]: json.loads(row["configuration"]) for row in plan}
    assert len(trials) == 2 * 2 * 6
    for row in trials:
        values = by_id[row["config_id"]]
        assert values["max_wal_size"] >= values["min_wal_size"]
        assert values["fsync"] is True  # it risks committed data
        changed = {name for name in values if values[name] != default[name]}
        assert row["space"] == "all" or changed <= {"shared_buffers"}
    assert {row["knobs"] for row in trials if row["space"] == "top1"} == {1}
    assert {row["knobs"] for row in trials if row["space"] == "all"} == {5}


def test_the_same_results_give_the_same_configurations_again(specs: Callable[..., StudySpecs]) -> None:
    assert tune(specs()) == tune(specs())


def test_more_trials_only_add(specs: Callable[..., StudySpecs]) -> None:
    """Else a longer session would measure everything again."""
    short, long = tune(specs(6))[1], tune(specs(12))[1]
    searched = [row for row in short if row["round"] == 0]
    assert len(searched) == 2 * 2 * 6 + 3
    assert [row for row in long if row["round"] == 0][: len(searched)] == searched


def test_blocks_hold_all_tuners_and_the_default_between(specs: Callable[..., StudySpecs]) -> None:
    case = specs().cases[0]
    blocks = list(tuning_blocks(case, 1, tuners=6, trials=9))
    assert [len(block) for block in blocks] == [27, 27, 8]
    for block in blocks:
        assert block[0].tuner is None
        assert block[-1].tuner is None
        turns = [(step.trial, step.tuner) for step in block if step.tuner is not None]
        assert [trial for trial, _ in turns] == sorted(trial for trial, _ in turns)
    everything = [(step.trial, step.tuner) for block in blocks for step in block if step.tuner is not None]
    assert sorted(everything) == [(trial, tuner) for trial in range(1, 10) for tuner in range(6)]


def test_a_winner_lost_nothing_in_power_cuts_or_no_more_than_the_default(specs: Callable[..., StudySpecs]) -> None:
    """With more than 512 pages of shared_buffers rows are lost here."""
    cut: list[int] = []

    def cut_power(values: dict[str, Any]) -> CutColumns:
        cut.append(values["shared_buffers"])
        if values["shared_buffers"] <= 512:
            return {"cuts": 5, "cuts_lost": 0, "rows_lost": 0}
        return {"cuts": 5, "cuts_lost": 1, "rows_lost": 10, "default_cuts_lost": 0, "loses_more": False}

    def lose_as_the_default(_: dict[str, Any]) -> CutColumns:
        return {"cuts": 5, "cuts_lost": 3, "rows_lost": 1, "default_cuts_lost": 2, "loses_more": False}

    winners, cut_trials, plan = tune_with_cuts(specs(12), cut_power)
    assert winners
    assert all(values["shared_buffers"] <= 512 for values in winners.values())
    assert {row["config_id"] for row in plan if row["round"] == 1 and not row["is_sentinel"]} == set(winners)
    assert max(cut) > 512  # the fastest are cut first
    assert len(cut) == len(cut_trials)  # each once
    winners, _, _ = tune_with_cuts(specs(12), lose_as_the_default)
    assert any(values["shared_buffers"] > 512 for values in winners.values())


def test_the_default_does_not_win_against_itself(specs: Callable[..., StudySpecs]) -> None:
    """A tuner asks for it, and by chance that run is faster than the first one."""
    loaded = specs()
    assert loaded.study.tune is not None
    tuner = make_tuners(loaded, loaded.cases[0], loaded.study.tune, RANKING)[0]
    default, other = tuner.space.default, {**tuner.space.default, "shared_buffers": 1024}
    rows: list[dict[str, Any]] = [{"config_id": name} for name in ("default", "other")]
    trials = [
        _Trial(cast("TrialRow", row), values, (0, None), 2000.0 - n)
        for n, (row, values) in enumerate(zip(rows, (default, other), strict=True))
    ]
    assert _choose_winner(tuner, trials[:1], {(0, None): 1000.0}, None, {}) is None
    assert _choose_winner(tuner, trials, {(0, None): 1000.0}, None, {}) == other
    assert [row.get("is_winner") for row in rows] == [None, True]


def test_a_trial_is_compared_with_the_default_of_its_block(specs: Callable[..., StudySpecs]) -> None:
    """The first run of all was faster than anything later; the second block is slower than the first."""
    loaded = specs(40)
    settings, case = loaded.study.tune, loaded.cases[0]
    assert settings is not None
    blocks: list[str] = []

    def drift(row: Row) -> Row:
        record, is_first = landscape(row), not blocks
        blocks.append(row["block_id"])
        slower = 0.5 if row["block_id"] != blocks[0] else 1.4 if is_first else 1.0
        if record["run"]["throughput_ops"] is not None:
            record["run"]["throughput_ops"] *= slower
        return record

    _, plan, trials = tune_case(loaded, case, settings, make_tuners(loaded, case, settings, RANKING), drift)
    by_id = {row["config_id"]: json.loads(row["configuration"])["shared_buffers"] for row in plan}
    best = {tuple(row[key] for key in ("space", "seed")): row["config_id"] for row in trials if row["is_winner"]}
    assert len(set(blocks)) > 2
    assert len(best) == 4
    for (space, seed), config in best.items():
        own = {by_id[row["config_id"]] for row in trials if (row["space"], row["seed"]) == (space, seed)}
        distance = {buffers: abs(10 - math.log2(buffers)) for buffers in own}
        assert distance[by_id[config]] < min(distance.values()) + 0.5  # that first run is part of its block's default


def tune_with_cuts(
    specs: StudySpecs, cut: Callable[[dict[str, Any]], CutColumns]
) -> tuple[dict[str, Row], set[str], list[Row]]:
    """Return the configurations of winners by id, the ids of those that were cut, and the plan."""
    settings, case = specs.study.tune, specs.cases[0]
    assert settings is not None
    tuners = make_tuners(specs, case, settings, RANKING)
    _, plan, trials = tune_case(specs, case, settings, tuners, landscape, cut)
    by_id = {row["config_id"]: json.loads(row["configuration"]) for row in plan}
    winners = {row["config_id"]: by_id[row["config_id"]] for row in trials if row["is_winner"]}
    return winners, {row["config_id"] for row in trials if row.get("cuts")}, plan


def test_winners_are_measured_again_next_to_the_default(specs: Callable[..., StudySpecs]) -> None:
    records, plan, trials = tune(specs())
    again = [row for row in plan if row["round"] == 1]
    winners = {row["config_id"] for row in trials if row["is_winner"]}
    assert {row["config_id"] for row in again if not row["is_sentinel"]} == winners
    assert len({row["block_id"] for row in again}) == 2
    assert len(records) == len(plan)
    throughput = {record["run"]["run_id"]: record["run"]["throughput_ops"] for record in records}
    for row in trials:
        if row["is_winner"]:
            own = [one for one in trials if (one["space"], one["seed"]) == (row["space"], row["seed"])]
            assert throughput[row["run_id"]] == max(throughput[one["run_id"]] or 0 for one in own)


@pytest.mark.slow
def test_tuners_learn(specs: Callable[..., StudySpecs]) -> None:
    """Later trials are better than the first, random ones; failures are avoided."""
    records, _, trials = tune(specs(40))
    throughput = {record["run"]["run_id"]: record["run"]["throughput_ops"] for record in records}
    one = [throughput[row["run_id"]] for row in trials if row["space"] == "top1"]
    early, late = one[:20], one[-40:]
    mean_early = sum(value or 0 for value in early) / len(early)
    assert sum(value or 0 for value in late) / len(late) > mean_early + 50


def test_the_count_of_runs_is_what_a_session_takes_at_most(specs: Callable[..., StudySpecs]) -> None:
    study = specs(9)
    assert study.study.tune is not None
    assert len(tune(study)[0]) <= count_runs(study.cases[0], study.study.tune)


def test_a_space_that_hardly_allows_anything_is_given_up(specs: Callable[..., StudySpecs]) -> None:
    study = specs()
    settings, case = study.study.tune, study.cases[0]
    assert settings is not None
    (tuner, *_) = make_tuners(study, case, settings, RANKING)
    tight = tuner.space.space.dbms.knobs["shared_buffers"].model_copy(update={"requires": "shared_buffers == 5"})
    tuner.space.space.dbms.knobs["shared_buffers"] = tight
    with pytest.raises(UserError, match=r"1000 suggestions .* break a `requires`"):
        tuner.ask()


def test_a_study_of_risky_knobs_only_needs_the_word(specs: Callable[..., StudySpecs]) -> None:
    only = {
        "    shared_buffers:\n    commit_delay:\n    min_wal_size:\n    max_wal_size:\n": "",
        "    wal_sync_method:\n": "",
    }
    study = specs(**only)
    settings = study.study.tune
    assert settings is not None
    with pytest.raises(UserError, match="with_durability"):
        make_tuners(study, study.cases[0], settings, RANKING)
    allowed = settings.model_copy(update={"with_durability": True})
    assert make_tuners(study, study.cases[0], allowed, RANKING)[0].space.parameters[0].name == "fsync"


def test_wrong_spaces_are_refused_by_line(specs: Callable[..., StudySpecs]) -> None:
    with pytest.raises(SpecErrors) as caught:
        specs(**{"[top1, all]": "[top0, all]"})
    assert "tune.spaces.0" in str(caught.value)
    with pytest.raises(SpecErrors) as caught:
        specs(**{"[top1, all]": "[all, all]"})
    assert "tune.spaces.1: found 'all' a second time" in str(caught.value)

"""Plans: reproducible, within constraints, never one configuration twice, sentinels where they belong."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shipped_specs import ROOT
from toy_study import CASE, make_specs

from knobscope.cli import main
from knobscope.durable_files import DamagedFileError
from knobscope.errors import UserError
from knobscope.specs import Knob, KnobChoice, StudySpecs
from knobscope.stages.plan import plan_screening, plan_sweep, screening_blocks
from knobscope.stages.plan.earlier import read_earlier
from knobscope.stages.plan.levels import screening_levels, sweep_levels
from knobscope.stages.plan.rounds import MOST_ACTIVE, case_space, sampling_method
from knobscope.stages.plan.sampling import draw_configurations
from knobscope.tables import read_table, write_table
from knobscope.tables.responses import RESPONSES


def make_knob(**changes: Any) -> dict[str, Any]:
    return {
        "type": "integer",
        "range": [1, 1000],
        "default": 10,
        "scale": "log",
        "apply": "restart",
        "mechanism": "other",
        "source": "https://example.org",
    } | changes


@pytest.fixture
def specs() -> StudySpecs:
    knobs = {
        "small": make_knob(),
        "large": make_knob(default=100, requires="large >= 2 * small"),
        "mode": make_knob(type="enum", values=["a", "b", "c"], range=None, default="b", scale="linear"),
        "sync": make_knob(type="boolean", range=None, default=True, scale="linear", requires="sync or mode != 'c'"),
        "page": make_knob(range=[1, 4], default=1, apply="load", scale="linear"),
    }
    sampling = {"method": "lhs", "runs_per_round": 25, "block_runs": 10, "max_rounds": 3}
    return make_specs({name: (knob, None) for name, knob in knobs.items()}, sampling=sampling)


def configurations_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(row["configuration"]) for row in rows if not row["is_sentinel"]]


def with_method(specs: StudySpecs, method: str) -> StudySpecs:
    sampling = specs.study.sampling.model_copy(update={"method": method})
    return replace(specs, study=specs.study.model_copy(update={"sampling": sampling}))


@pytest.mark.parametrize("method", ["lhs", "random"])
def test_screening_is_reproducible_allowed_and_never_repeats(specs: StudySpecs, method: str) -> None:
    specs = with_method(specs, method)
    rounds = [plan_screening(specs, CASE, index) for index in range(3)]
    assert rounds == [plan_screening(specs, CASE, index) for index in range(3)]
    drawn = [configuration for rows in rounds for configuration in configurations_of(rows)]
    assert len(drawn) == 75
    assert len({json.dumps(configuration, sort_keys=True) for configuration in drawn}) == 75
    for configuration in drawn:
        assert configuration["large"] >= 2 * configuration["small"]
        assert configuration["sync"] or configuration["mode"] != "c"


def test_another_seed_draws_other_configurations(specs: StudySpecs) -> None:
    other = StudySpecs(specs.study.model_copy(update={"seed": 2}), specs.dbms, specs.devices, specs.workloads)
    assert configurations_of(plan_screening(specs, CASE, 0)) != configurations_of(plan_screening(other, CASE, 0))


def test_lhs_shows_every_level_equally_often(specs: StudySpecs) -> None:
    space = case_space(specs, CASE)
    free = type(space)(space.dbms, {"page": [1, 2, 3, 4], "small": list(range(1, 25))}, {"large": 100}, space.facts)
    drawn = draw_configurations(free, "lhs", 24, np.random.RandomState(1), set())
    assert Counter(configuration["page"] for configuration in drawn) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert Counter(configuration["small"] for configuration in drawn) == Counter(range(1, 25))


def test_a_small_space_ends_short_instead_of_repeating(specs: StudySpecs) -> None:
    space = case_space(specs, CASE)
    tiny = type(space)(space.dbms, {"mode": ["a", "b"], "page": [1, 2]}, space.default, space.facts)
    assert len(draw_configurations(tiny, "lhs", 50, np.random.RandomState(1), set())) == 4


def test_blocks_hold_all_runs_once_with_sentinels_at_start_middle_and_end(specs: StudySpecs) -> None:
    rows = plan_screening(specs, CASE, 0)
    blocks = {row["block_id"] for row in rows}
    assert len(blocks) == screening_blocks(specs) == 3
    for block in blocks:
        own = sorted((row for row in rows if row["block_id"] == block), key=lambda row: row["position"])
        assert [row["position"] for row in own] == list(range(len(own)))
        sentinels = [row["position"] for row in own if row["is_sentinel"]]
        assert sentinels[0] == 0
        assert sentinels[-1] == len(own) - 1
        assert any(0.3 < position / (len(own) - 1) < 0.7 for position in sentinels)


def test_sweep_changes_one_knob_at_a_time_in_complete_blocks(specs: StudySpecs) -> None:
    rows = plan_sweep(specs, CASE, ["small", "mode"])
    space = case_space(specs, CASE)
    for repeat in range(specs.study.sweep.repeats):
        own = configurations_of([row for row in rows if row["repeat"] == repeat])
        changed = [{k: v for k, v in one.items() if v != space.default[k]} for one in own]
        # 100 breaks `large >= 2 * small` beside the default of 100, and 1000 beside all; mode c needs sync.
        alone = [{"small": 1}, {"mode": "a"}, {"mode": "c"}]
        beside = [{"large": 1000}, {"large": 1000, "small": 100}]
        assert sorted(map(str, changed)) == sorted(map(str, [*alone, *beside]))


def test_sweep_takes_one_value_per_order_of_magnitude_and_special_values() -> None:
    knob = Knob.model_validate(make_knob(range=[3, 5000], default=100, special={0: "off"}))
    assert sweep_levels(knob, None, 100) == [0, 3, 10, 100, 1000, 5000]
    assert sweep_levels(knob, KnobChoice(values=[7, 100, 9]), 100) == [7, 9, 100]


def test_levels_hold_the_baseline_in_order() -> None:
    knob = Knob.model_validate(make_knob(range=[1, 1000], default=50))
    assert screening_levels(knob, None, 4, 50) == [1, 10, 50, 100, 1000]
    enum = Knob.model_validate(make_knob(type="enum", values=["z", "y", "x"], range=None, default="y", scale="linear"))
    assert screening_levels(enum, KnobChoice(values=["x", "z"]), 4, "y") == ["z", "y", "x"]


def test_defaults_that_the_spec_chooses_are_written_in_every_run() -> None:
    """The DBMS would use another value, and the report calls these the default configuration."""
    chosen = make_knob(default=50, built_in=10)
    knobs = {"varied": (make_knob(), None), "chosen": (chosen, None), "untouched": (make_knob(), None)}
    rows = plan_screening(make_specs(knobs, "chosen", "untouched"), CASE, 0)
    configurations = [json.loads(row["configuration"]) for row in rows]
    assert all(configuration.keys() == {"varied", "chosen"} for configuration in configurations)
    assert {configuration["chosen"] for configuration in configurations} == {50}


def test_load_time_knobs_decide_on_the_snapshot(specs: StudySpecs) -> None:
    rows = plan_screening(specs, CASE, 0)
    by_page: dict[int, set[str]] = {}
    for row in rows:
        by_page.setdefault(json.loads(row["configuration"])["page"], set()).add(row["load_id"])
    assert all(len(ids) == 1 for ids in by_page.values())
    assert len({next(iter(ids)) for ids in by_page.values()}) == len(by_page)


def test_methods_that_look_at_responses_go_by_earlier_rounds(specs: StudySpecs, tmp_path: Path) -> None:
    specs = with_method(specs, "active")
    space = case_space(specs, CASE)
    with pytest.raises(UserError, match="--plans and --runs"):
        plan_screening(specs, CASE, 1)
    first = plan_screening(specs, CASE, 0)
    write_table(tmp_path / "screen-0.parquet", "plan", first)
    runs = [
        {
            "config_id": row["config_id"],
            "status": "ok",
            "throughput_ops": 100.0 + 50 * (json.loads(row["configuration"])["mode"] == "a"),
        }
        for row in first
    ]
    runs[1] = {**runs[1], "status": "timeout", "throughput_ops": None}
    write_table(tmp_path / "block/runs.parquet", "runs", runs)
    earlier = read_earlier(space, [tmp_path / "screen-0.parquet"], [tmp_path / "block"], RESPONSES["throughput"])
    assert len(earlier) == 26  # 25 and the sentinel
    assert sum(map(math.isnan, earlier.values())) == 1
    second = configurations_of(plan_screening(specs, CASE, 1, earlier))
    assert second == configurations_of(plan_screening(specs, CASE, 1, earlier))
    assert len(second) == 25 and not {space.key(one) for one in second} & earlier.keys()
    # The stop rule is checked with the others: the first 30, of which the default is one, and half of the rest.
    rounds = (first, plan_screening(specs, CASE, 1, earlier))
    assert [sum(row["is_chosen"] for row in rows) for rows in rounds] == [0, 10]
    for rows in rounds:
        assert not any(row["is_chosen"] for row in rows if row["is_sentinel"])


def test_auto_looks_at_earlier_rounds_where_a_dbms_has_one_case(specs: StudySpecs) -> None:
    specs = with_method(specs, "auto")
    assert sampling_method(specs, CASE) == "active"
    assert plan_screening(specs, CASE, 0) == plan_screening(with_method(specs, "active"), CASE, 0)

    two = specs.study.model_copy(update={"workloads": {"load": None, "other": None}})
    compared = replace(specs, study=two, workloads={**specs.workloads, "other": specs.workloads["load"]})
    assert sampling_method(compared, CASE) == "lhs"
    assert plan_screening(compared, CASE, 2) == plan_screening(with_method(specs, "lhs"), CASE, 2)

    several = {f"k{number}": None for number in range(MOST_ACTIVE + 1)}
    many = specs.study.model_copy(update={"knobs": {"toy": several}})
    assert sampling_method(replace(specs, study=many), CASE) == "narrowing"
    assert sampling_method(with_method(replace(specs, study=many), "random"), CASE) == "random"


def test_methods_that_look_at_nothing_choose_nothing(specs: StudySpecs) -> None:
    assert not any(row["is_chosen"] for row in plan_screening(specs, CASE, 0))


@pytest.mark.parametrize("number", ["-1", "1.5", "first"])
def test_a_round_has_a_number(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--study", "s", "--case", "a/b/c", "--phase", "sweep", "--out", "o", f"--round={number}"])
    assert ended.value.code == 2
    assert f"argument --round: {number!r}; expected a whole number from 0 on" in capsys.readouterr().err


def test_a_plan_that_is_not_there_is_no_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.parquet: found no such file; expected a parquet file") as refused:
        read_table([tmp_path / "gone.parquet"])
    assert not isinstance(refused.value, DamagedFileError)


def test_one_block_is_no_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", "--study", str(ROOT / "specs/studies/sqlite-consumer.yaml"), "--root", str(ROOT)]
    case = ["--case", "sqlite/nvme-consumer/ycsb-a", "--phase", "screen"]
    assert main([*plan, *case, "--out", str(tmp_path / "plan.parquet")]) == 0
    assert capsys.readouterr().err == "planned 9 runs in 1 block for sqlite/nvme-consumer/ycsb-a\n"

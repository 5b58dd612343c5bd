"""Further rounds of a sweep: just the values that need more, under names that no earlier round has."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shipped_specs import ROOT, shipped_study
from studies import make_folder

from knobscope.cli import main
from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import StudySpecs, load_study
from knobscope.stages.plan import aim_of, plan_reinforcement, plan_sweep
from knobscope.stages.plan.aims import describe_ratio, foretell
from knobscope.tables import read_table, write_table
from knobscope.workflow.pipeline import Pipeline

KNOBS = ["journal_mode", "synchronous"]
NAMES = ["block_id", "config_id", "position"]


def load(folder: Path, study: str = "sqlite-tiers", **sweep: Any) -> StudySpecs:
    """Load a shipped study with these fields of its sweep changed."""
    path = folder / f"specs/studies/{study}.yaml"
    if not path.exists():
        make_folder(folder)
    head = (ROOT / f"specs/studies/{study}.yaml").read_text().split("sweep:")[0]
    path.write_text(f"{head}sweep: {json.dumps({'repeats': 3, **sweep})}\n")
    return load_study(path, folder, runnable=False)


def values_of(rows: list[Any]) -> list[str]:
    return [row["config_id"] for row in rows if not row["is_sentinel"]]


def test_the_first_round_is_the_same_with_further_ones_to_come(tmp_path: Path) -> None:
    plain, repeated = load(tmp_path), load(tmp_path, most=9, effect=1.2, power=0.8)
    assert plan_sweep(plain, plain.cases[0], KNOBS) == plan_sweep(repeated, repeated.cases[0], KNOBS)


def test_a_further_round_holds_the_values_that_need_more_as_often_as_they_do(tmp_path: Path) -> None:
    specs = load(tmp_path, most=9)
    case = specs.cases[0]
    first = plan_sweep(specs, case, KNOBS)
    one, two, *others = dict.fromkeys(values_of(first))
    rows = plan_reinforcement(specs, case, 1, {one: 3, two: 1, **dict.fromkeys(others, 0)}, measured=3)
    assert Counter(values_of(rows)) == {one: 3, two: 1}
    blocks = list(dict.fromkeys(row["block_id"] for row in rows))
    assert blocks == [f"{case}/sweep-1-{number}" for number in range(3)]
    for block in blocks:
        own = [row["is_sentinel"] for row in rows if row["block_id"] == block]
        assert own[0] and own[-1]
    again = plan_reinforcement(specs, case, 2, {one: 2}, measured=6)
    everything = [*first, *rows, *again]
    assert len({tuple(row[name] for name in NAMES) for row in everything}) == len(everything)
    repetitions = [(row["config_id"], row["repeat"]) for row in everything if row["config_id"] == one]
    assert len(set(repetitions)) == len(repetitions) == 8
    settings = {row["config_id"]: row["configuration"] for row in first}
    assert all(settings[row["config_id"]] == row["configuration"] for row in everything)


def test_a_value_that_the_study_no_longer_has_is_refused(tmp_path: Path) -> None:
    specs = load(tmp_path, most=9)
    with pytest.raises(UserError, match="no configuration abc"):
        plan_reinforcement(specs, specs.cases[0], 1, {"abc": 1}, measured=3)


def test_comparisons_are_those_of_all_cases_or_of_all_pairs_of_tiers(tmp_path: Path) -> None:
    aim = aim_of(load(tmp_path), values=12)
    assert (aim.comparisons, aim.between_devices) == (24, True)
    alone = shipped_study("quickstart")
    aim = aim_of(alone, values=12)
    assert (aim.comparisons, aim.between_devices, aim.effect, aim.power) == (12, False, 1.3, 0.9)


def test_the_plan_tells_what_it_will_find(tmp_path: Path) -> None:
    specs = load(tmp_path)
    text = foretell(specs, 12, (0.06, 9))
    aim = aim_of(specs, 12)
    needed = aim.count_blocks(0.06, 12, 3)
    visible = describe_ratio(aim.smallest_in_blocks(0.06, 3, 12, 3))
    assert needed is not None and needed > 3
    assert text == (
        f"noise 6.2 % between 9 runs of the default configuration: 3 blocks find effects of {visible} "
        f"(power 90 %, 24 comparisons on 2 devices); for 1.3x plan {needed} blocks"
    )
    assert foretell(load(tmp_path, most=9), 12, (0.06, 9)).endswith(f"; 1.3x takes {needed}, and up to 9 are measured")
    assert foretell(specs, 12, (0.01, 9)).endswith("on 2 devices)")
    assert "3 blocks find no effects" in foretell(specs, 12, (30.0, 9))
    assert foretell(specs, 12, None).startswith("noise is not known before the sweep")


def test_ratios_are_rounded_up() -> None:
    assert [describe_ratio(ratio) for ratio in (1.3, 1.301, 1.0, np.inf)] == ["1.3x", "1.31x", "1x", "no"]


@pytest.mark.parametrize("noise", [{"sd": 0.06, "runs": 9}, None])
def test_the_command_takes_noise_from_the_fit_of_its_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], noise: dict[str, float] | None
) -> None:
    specs = load(tmp_path, always=KNOBS)
    fits = [tmp_path / f"results/{case}/fit/0.json" for case in specs.cases]
    for number, fit in enumerate(fits):
        fit.parent.mkdir(parents=True)
        write_sealed(fit, {"importance": [], "noise": noise if number == 0 else {"sd": 0.5, "runs": 3}})
    study = str(tmp_path / "specs/studies/sqlite-tiers.yaml")
    arguments = ["plan", "--study", study, "--root", str(tmp_path), "--case", str(specs.cases[0]), "--phase", "sweep"]
    arguments += ["--out", str(tmp_path / "plan.parquet")]
    assert main([*arguments, "--fits", *map(str, fits)]) == 0
    said = capsys.readouterr().err
    assert ("noise 6.2 % between 9 runs" in said) == (noise is not None)
    assert ("noise is not known before the sweep" in said) == (noise is None)
    assert main([*arguments, "--round", "1"]) == 2
    assert "--reinforce" in capsys.readouterr().err


def test_commands_of_a_further_round_fit_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, noisy runs, what they ask for, and the plan of that."""
    specs = load(tmp_path, most=5, always=KNOBS)
    case, rng = specs.cases[0], np.random.default_rng(1)
    plan, block, asked = tmp_path / "plan.parquet", tmp_path / "block", tmp_path / "repeat/0.json"
    rows = plan_sweep(specs, case, KNOBS)
    write_table(plan, "plan", rows)
    runs = [
        {
            **{name: row[name] for name in ("block_id", "config_id", "is_sentinel", "position")},
            "session": "one",
            "status": "ok",
            "throughput_ops": 1000 * np.exp(rng.normal(0, 0.3)),
        }
        for row in rows
    ]
    write_table(block / "runs.parquet", "runs", runs)
    study = ["--study", str(tmp_path / "specs/studies/sqlite-tiers.yaml"), "--root", str(tmp_path)]
    common = [*study, "--case", str(case)]
    assert main(["reinforce", *common, "--runs", str(block), "--plans", str(plan), "--out", str(asked)]) == 0
    assert "go on after 3 blocks: up to 2 blocks more for " in capsys.readouterr().err
    further = tmp_path / "further.parquet"
    arguments = [*common, "--phase", "sweep", "--round", "1", "--reinforce", str(asked), "--out", str(further)]
    assert main(["plan", *arguments]) == 0
    planned = read_table([further])
    assert Counter(planned.loc[~planned["is_sentinel"], "config_id"]) == dict.fromkeys(values_of(rows), 2)
    assert planned["round"].unique().tolist() == [1]
    load(tmp_path)
    assert main(["reinforce", *common, "--runs", str(block), "--plans", str(plan), "--out", str(asked)]) == 2
    assert "`sweep.most`" in capsys.readouterr().err


class Checkpoints:
    """What Snakemake hands to the pipeline: outputs of checkpoints that are done."""

    def __init__(self, results: str) -> None:
        self.reinforce, self.results, self.asked = self, results, []

    def get(self, case: str, round: int) -> Any:
        self.asked.append(round)
        return type("Job", (), {"output": [f"{self.results}/{case}/repeat/{round}.json"]})


def test_the_pipeline_follows_what_each_round_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(load(tmp_path, most=9), "study.yaml")
    monkeypatch.chdir(tmp_path)
    case, checkpoints = str(pipeline.cases[0]), Checkpoints(pipeline.results)
    for round_, more in enumerate((2, 1, 0)):
        path = Path(f"{pipeline.results}/{case}/repeat/{round_}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"more": more})
    names = [Path(path).name for path in pipeline.sweep_runs(checkpoints, case)]
    assert names == ["sweep-0-0", "sweep-0-1", "sweep-0-2", "sweep-1-0", "sweep-1-1", "sweep-2-0"]
    assert [Path(path).stem for path in pipeline.last_reinforcement(checkpoints, case)] == ["2"]
    assert checkpoints.asked == [0, 1, 2]  # once each: what is evaluated stays so
    assert [Path(path).stem for path in pipeline.sweep_plans(checkpoints, case, 1)] == ["sweep-0", "sweep-1"]
    assert "3 blocks, 9 at most where noise hides effects of 1.3x" in pipeline.describe()


def test_a_study_that_does_not_ask_for_it_has_no_such_stage(tmp_path: Path) -> None:
    pipeline = Pipeline(load(tmp_path, always=KNOBS), "study.yaml")
    case, checkpoints = str(pipeline.cases[0]), Checkpoints(pipeline.results)
    assert len(pipeline.sweep_runs(checkpoints, case)) == 3
    assert pipeline.last_reinforcement(checkpoints, case) == []
    assert checkpoints.asked == []
    assert pipeline.sweep_spec(case)["study"]["sweep"] == {"repeats": 3, "always": KNOBS, "pairs": 0}
    changed = Pipeline(load(tmp_path, always=KNOBS, most=9, power=0.8), "study.yaml")
    assert repr(changed.sweep_spec(case)) == repr(pipeline.sweep_spec(case))
    assert changed.reinforce_spec != pipeline.reinforce_spec

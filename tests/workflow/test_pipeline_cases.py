"""Snakemake hears of the next round of every case at once, and each checkpoint's output is read once."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import load_study
from knobscope.workflow.options import find_study_file
from knobscope.workflow.pipeline import Pipeline

ROOT = Path(__file__).parents[2]


class NotEvaluatedError(Exception):
    """As Snakemake's IncompleteCheckpointException."""


class Select:
    """Snakemake's checkpoint `select`, evaluated as far as there are files; notes what it was asked for."""

    def __init__(self, results: str) -> None:
        self.results = results
        self.asked: list[tuple[str, int]] = []

    def get(self, case: str, round: int) -> Any:
        self.asked.append((case, round))
        path = f"{self.results}/{case}/fit/{round}.json"
        if not Path(path).is_file():
            raise NotEvaluatedError(path)
        return SimpleNamespace(output=[path])


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.chdir(tmp_path)
    path = ROOT / "specs/studies/sqlite-tiers.yaml"
    return Pipeline(load_study(path, ROOT, runnable=False), str(path))


def write_fit(pipeline: Pipeline, case: str, *, stopped: bool) -> Path:
    path = Path(f"{pipeline.results}/{case}/fit/0.json")
    write_sealed(path, {"stopped": stopped, "r2_splits": [0.99]})
    return path


def test_each_case_goes_on_by_itself(pipeline: Pipeline) -> None:
    checkpoints = SimpleNamespace(select=Select(pipeline.results))
    names = [str(case) for case in pipeline.cases]
    assert len(names) > 1
    functions = pipeline.by_case(lambda case: [pipeline.last_fit(checkpoints, case)])
    for case, function in zip(names, functions, strict=True):
        with pytest.raises(NotEvaluatedError, match=f"{case}/fit/0.json"):
            function({})
    write_fit(pipeline, names[0], stopped=False)
    last = write_fit(pipeline, names[1], stopped=True)
    with pytest.raises(NotEvaluatedError, match=f"{names[0]}/fit/1.json"):
        functions[0]({})
    assert functions[1]({}) == [str(last)]


def test_a_corrected_tier_asks_anew_how_often_the_sweep_measures(pipeline: Pipeline) -> None:
    """To compare effects between tiers takes more blocks than to find them on each device."""
    devices = pipeline.specs.devices
    alike = {name: device.model_copy(update={"tier": "hdd"}) for name, device in devices.items()}
    one_tier = replace(pipeline, specs=replace(pipeline.specs, devices=alike))
    assert one_tier.reinforce_spec != pipeline.reinforce_spec
    assert pipeline.reinforce_spec.keys() == {"sweep", "fdr", "comparisons_per_value"}, "finished studies stay finished"


def test_a_fit_is_asked_for_once_and_read_again_when_it_is_made_anew(pipeline: Pipeline) -> None:
    checkpoints = SimpleNamespace(select=Select(pipeline.results))
    case = str(pipeline.cases[0])
    first = write_fit(pipeline, case, stopped=True)
    assert [pipeline.last_fit(checkpoints, case) for _ in range(3)] == [str(first)] * 3
    assert checkpoints.select.asked == [(case, 0)]
    write_fit(pipeline, case, stopped=False)
    os.utime(first, ns=(1, 1))  # a clock that was set back
    with pytest.raises(NotEvaluatedError, match=f"{case}/fit/1.json"):
        pipeline.last_fit(checkpoints, case)


def test_a_misspelled_option_does_not_run_the_default_study() -> None:
    with pytest.raises(UserError, match="--config: found stdy; expected study or retry_failed"):
        find_study_file({"stdy": "specs/studies/tutorial.yaml"})


def test_a_dry_run_refuses_a_rule_whose_query_names_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise `detect` would say it, after all runs."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    shutil.copytree(ROOT / "rules/mismatch/tier", tmp_path / "mine/tier")
    query, study = tmp_path / "mine/tier/rule.sql", tmp_path / "specs/studies/tutorial.yaml"
    query.write_text(query.read_text().replace("device_tiers", "device_teers"))
    study.write_text(study.read_text().replace("rules: [slower_tier, tier,", "rules: [slower_tier, mine/tier,"))
    monkeypatch.chdir(tmp_path)
    dry = SimpleNamespace(
        output_settings=SimpleNamespace(dryrun=True),
        remote_exec=False,
        resource_settings=SimpleNamespace(nodes=1),
    )
    with pytest.raises(SystemExit):
        Pipeline.open({"study": str(study)}, dry)
    assert re.search("mine/tier/rule.sql:[0-9]+: file: found .*device_teers", capsys.readouterr().err)

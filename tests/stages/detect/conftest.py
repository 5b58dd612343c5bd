"""Studies with known truth, and sweeps as the effects see them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generated_studies import Study, StudyMaker

from knobscope.stages.detect import METRICS, build_database


@pytest.fixture(scope="session")
def make_study(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Study]:
    """Return a function that makes a study from the fields of StudyMaker; equal fields give the same study again.

    A function among the fields is equal to no other one, so a study with one is made anew.
    """
    made: dict[str, Study] = {}

    def make_anew(fields: dict[str, Any]) -> Study:
        root = tmp_path_factory.mktemp("study")
        maker = StudyMaker(root, **fields)
        specs = maker.specs()
        files, database = maker.files(specs), root / "study.duckdb"
        build_database(files, specs, database)
        return Study(specs, files, database)

    def make(**fields: Any) -> Study:
        if any(callable(value) for value in fields.values()):
            return make_anew(fields)
        key = repr(sorted(fields.items()))
        if key not in made:
            made[key] = make_anew(fields)
        return made[key]

    return make


@pytest.fixture  # not of the session, which would keep the `make_study` of the file that asked first
def judge_one(make_study: Callable[..., Study]) -> Callable[..., pd.DataFrame]:
    """Return a function that gives a rule's findings about one of several cases, which differ in fields of StudyMaker.

    They are devices of one study, whose other fields are common to all: a study of many cases is made in a fifth of the
    time of as many studies.
    """

    def judge(rule: str, cases: Sequence[Mapping[str, Any]], case: Mapping[str, Any], **common: Any) -> pd.DataFrame:
        devices = [f"nvme-{number}" for number in range(len(cases))]
        study = make_study(devices=devices, of_device=dict(zip(devices, cases, strict=True)), **common)
        findings = study.judge(rule)
        return findings[findings["device"] == devices[cases.index(case)]]

    return judge


@pytest.fixture(scope="session")
def draw_sweep() -> Callable[..., pd.DataFrame]:
    """Return a function that draws the sweep of a case as view `sweep_metrics` shows it, each block in random order."""

    def draw(rng: np.random.Generator, blocks: int, values: int, noise: float = 0.03, **more: Any) -> pd.DataFrame:
        sentinels = max(3, 2 + values // 12)
        codes = np.concatenate([np.zeros(sentinels, int), np.arange(1, values + 1)])
        parts = []
        for block in range(blocks):
            order = rng.permutation(len(codes))
            at = np.linspace(0, len(codes) - 1, sentinels).astype(int)
            setting = codes[order]
            rest = setting[setting > 0]
            setting = np.insert(rest, np.minimum(at - np.arange(sentinels), len(rest)), 0)
            parts.append(pd.DataFrame({"block_id": f"b{block}", "position": range(len(setting)), "setting": setting}))
        frame = pd.concat(parts, ignore_index=True)
        named = np.where(frame["setting"] > 0, frame["setting"].astype(str), None)
        level = {"throughput_ops": 1000.0} | more  # draws do not depend on how many metrics there are
        columns = dict.fromkeys(METRICS, np.nan) | {
            name: value * np.exp(rng.normal(0, noise, len(frame)) + 0.2 * frame["block_id"].factorize()[0])
            for name, value in level.items()
        }
        return frame.assign(
            session="one",
            is_sentinel=frame["setting"] == 0,
            dbms="d",
            device="v",
            workload="w",
            knob=np.where(frame["setting"] > 0, "k", None),
            value=named,
            baseline=np.where(frame["setting"] > 0, "0", None),
            beside=None,
            run_id=range(len(frame)),
            config_id=frame["setting"].astype(str),
            reference_id="0",
            **columns,
        )

    return draw

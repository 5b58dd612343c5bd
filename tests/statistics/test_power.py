"""A small version of the power study: what is true is found, what is not is rarely made up, noise is not ranked."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

STUDY = Path(__file__).parents[2] / "benchmarks/power.py"


@pytest.fixture(scope="module")
def power() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("power", STUDY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["power"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["power"]


@pytest.mark.slow
def test_terms_and_points_are_found_and_none_made_up(power: ModuleType) -> None:
    rows = pd.DataFrame([row for seed in range(25) for row in power.judge_signal(250, seed)])
    means = rows.groupby("noise").mean()
    assert (means["terms"] > 0.98).all() and (means["interaction"] > 0.95).all()
    for shape in power.SHAPES:
        assert (means.loc[[0.02, 0.1], shape] >= 0.8).all(), shape
        assert means.loc[0.3, f"{shape} ±1"] >= 0.5, shape
    assert means["idle"].mean() < 0.12  # one in twenty is significant by chance
    assert means["false_interactions"].mean() < 0.02
    assert means[["points on the line", "points of idle knobs"]].to_numpy().mean() < 0.08


@pytest.mark.long
def test_pure_noise_is_not_ranked(power: ModuleType) -> None:
    assert sum(power.judge_noise(250, "anova", seed) for seed in range(20)) <= 1
    assert not power.judge_noise(120, "extra_trees", 1)

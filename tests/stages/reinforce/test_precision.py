"""Standard errors of a sweep are those of the full regression, and predictions are those of the design."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_sweeps import draw_sweep

from knobscope.stages.detect import METRICS, effects_of_case, find_stalled_runs
from knobscope.stages.reinforce import SweepRuns, count_more, measure_precision
from knobscope.statistics.power import Aim


def runs_of(frame: pd.DataFrame, values: int) -> SweepRuns:
    setting = frame["config_id"].str[1:].astype(int).to_numpy(np.int64)
    block = frame["block_id"].factorize()[0].astype(np.int64)
    return SweepRuns(setting, block, block, np.log(frame["throughput_ops"].to_numpy(float)), values + 1)


def test_errors_are_those_of_ordinary_least_squares_in_blocks_of_different_values() -> None:
    """With few values, whose variances nobody can tell apart, and one run of each configuration per block."""
    import statsmodels.formula.api as smf

    _, frame = draw_sweep(np.random.default_rng(3), [[1, 2, 3, 4]] * 3 + [[2, 4]] * 2 + [[4]], 0.05)
    frame = frame.drop_duplicates(["block_id", "config_id"])
    precision = measure_precision(runs_of(frame, 4))
    full = smf.ols("np.log(throughput_ops) ~ C(block_id) + C(config_id, Treatment('c0'))", frame).fit()
    errors = [full.bse[f"C(config_id, Treatment('c0'))[T.c{value}]"] for value in range(1, 5)]
    np.testing.assert_allclose(precision.errors, errors, rtol=1e-8)
    assert precision.noise == pytest.approx(np.sqrt(full.scale))
    assert precision.errors.argmin() == 3


def test_errors_are_those_that_detect_will_give() -> None:
    """With values that differ in noise, a stalled run and blocks of some values, in a sweep that does not drift.

    Values from 10 on are compared with value 1, not with the default.
    """
    blocks = [list(range(1, 16))] * 4 + [[3, 8]] * 3
    _, frame = draw_sweep(np.random.default_rng(4), blocks, {-1: 0.04, 3: 0.3, 8: 0.3})
    frame.loc[frame.index[frame["config_id"] == "c5"][1], "throughput_ops"] /= 20
    reference = np.where(np.arange(1, 16) >= 10, 1, 0)
    precision = measure_precision(replace(runs_of(frame, 15), reference=reference))
    setting = frame["config_id"].str[1:]
    is_beside = setting.astype(int) >= 10
    names = {"knob": "k", "value": setting, "baseline": "0"}
    names |= {"beside": np.where(is_beside, "{}", None), "reference_id": np.where(is_beside, "c1", "c0")}
    about = {name: np.where(frame["is_sentinel"], None, value) for name, value in names.items()}
    metrics = dict.fromkeys(METRICS, np.nan) | {"throughput_ops": frame["throughput_ops"]}
    runs = frame.assign(**about, **metrics, dbms="d", device="v", workload="w", run_id=range(len(frame)))
    stalled = runs["run_id"].isin([run for run, _ in find_stalled_runs(runs)])
    assert stalled.sum() == 1
    effects, judged = effects_of_case(runs.assign(throughput_ops=runs["throughput_ops"].mask(stalled)), 0.05)
    assert judged["treatment"].unique().tolist() == ["none"]
    found = effects[effects["metric"] == "throughput_ops"].astype({"value": int}).sort_values("value")
    np.testing.assert_allclose(precision.errors, found["standard_error"], rtol=1e-8)
    np.testing.assert_allclose(precision.degrees, found["degrees"], rtol=1e-8)


def test_a_block_without_a_default_run_compares_nothing() -> None:
    _, frame = draw_sweep(np.random.default_rng(3), [[1, 2, 3]] * 3, 0.05)
    bare = frame[~(frame["is_sentinel"] & frame["block_id"].str.endswith("-2"))]
    whole = frame[~frame["block_id"].str.endswith("-2")]
    np.testing.assert_allclose(measure_precision(runs_of(bare, 3)).errors, measure_precision(runs_of(whole, 3)).errors)


def test_one_block_has_no_errors() -> None:
    _, frame = draw_sweep(np.random.default_rng(3), [[1, 2, 3]], 0.05)
    assert np.isnan(measure_precision(runs_of(frame, 3)).errors).all()


def test_the_number_of_blocks_is_that_of_the_design() -> None:
    """Complete blocks whose noise is known: what `Aim.count_blocks` says beforehand."""
    values, aim = list(range(1, 25)), Aim(1.2, 0.9, 0.05, 48)
    _, frame = draw_sweep(np.random.default_rng(3), [values] * 3, 0.1)
    precision = measure_precision(runs_of(frame, 24))
    needed = aim.count_blocks(precision.noise, 24, 4)
    assert needed is not None and needed > 4
    lacking, room = np.ones(24, bool), np.full(24, 50)
    assert np.median(count_more(precision, aim, lacking, room)) == pytest.approx(needed - 3, abs=1)
    some = np.isin(np.arange(24), [2, 7])
    more = count_more(precision, aim, some, room)
    assert (more > 0).tolist() == some.tolist()
    assert count_more(precision, aim, some, np.where(some, 1, 0)).sum() == 2


def test_values_against_another_one_need_more_blocks_and_bring_it_along() -> None:
    """What they are compared with runs once a block, the default three times: errors of sqrt(2), not sqrt(4 / 3)."""
    values, aim = list(range(1, 9)), Aim(1.2, 0.9, 0.05, 8)
    _, frame = draw_sweep(np.random.default_rng(3), [values] * 4, 0.1)
    plain = measure_precision(runs_of(frame, 8))
    beside = measure_precision(replace(runs_of(frame, 8), reference=np.array([0, 1, 1, 1, 1, 1, 1, 1])))
    assert np.median(beside.errors[1:] / plain.errors[1:]) == pytest.approx(np.sqrt(1.5), rel=0.15)
    assert beside.errors[0] == plain.errors[0]
    lacking, room = np.arange(8) == 5, np.full(8, 60)
    fewer, more = (count_more(one, aim, lacking, room)[5] for one in (plain, beside))
    assert 0 < fewer < more < 60

"""Which runs may be compared: drift, bends, resumed blocks, failed sentinels."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from knobscope.stages.detect import effects_of_case

Draw = Callable[..., pd.DataFrame]


def judge(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    effects, blocks = effects_of_case(runs, 0.05)
    throughput = effects[effects["metric"] == "throughput_ops"].set_index("value")
    return throughput, blocks.set_index(["block_id", "session"])


def scale(runs: pd.DataFrame, block: str, factor: Callable[[pd.Series], pd.Series]) -> None:
    """Multiply the throughput of a block by a function of the position in it, from 0 to 1."""
    rows = runs["block_id"] == block
    position = runs.loc[rows, "position"] / runs.loc[rows, "position"].max()
    runs.loc[rows, "throughput_ops"] *= factor(position)


def test_steady_blocks_are_left_as_they_are(draw_sweep: Draw) -> None:
    _, blocks = judge(draw_sweep(np.random.default_rng(3), 3, 20))
    assert blocks["treatment"].tolist() == ["none"] * 3
    assert blocks["sentinels"].tolist() == [3, 3, 3]
    assert (blocks["sentinel_change"].abs() < 0.2).all()


def test_a_drifting_block_gets_a_line_and_comparisons_stay_right(draw_sweep: Draw) -> None:
    """A block that loses half its speed from first to last run; value 7 really is 20 % faster."""
    runs = draw_sweep(np.random.default_rng(4), 3, 20)
    runs.loc[runs["value"] == "7", "throughput_ops"] *= 1.2
    scale(runs, "b1", lambda position: 0.5**position)
    effects, blocks = judge(runs)
    assert blocks["treatment"].tolist() == ["none", "position", "none"]
    drifted = blocks.loc[("b1", "one")]
    assert drifted["drift"] == pytest.approx(np.log(0.5), abs=0.05)
    assert drifted["drift_p"] < 1e-6
    assert drifted["sentinel_change"] == pytest.approx(np.log(0.5), abs=0.2)
    assert effects.loc["7", "estimate"] == pytest.approx(np.log(1.2), abs=0.06)
    assert effects["noise"].iloc[0] == pytest.approx(0.03, rel=0.3)
    assert effects.loc["7", "p_value"] < 1e-4
    others = effects.drop("7")
    assert (others["p_value"] < 0.05).mean() < 0.2


def test_a_bending_block_is_dropped(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(5), 3, 20)
    scale(runs, "b2", lambda position: 1 - 1.6 * (position - 0.5) ** 2)
    effects, blocks = judge(runs)
    assert blocks["treatment"].tolist() == ["none", "none", "dropped"]
    assert "bends" in blocks.loc[("b2", "one"), "reason"]
    assert effects["blocks"].unique().tolist() == [2]
    assert effects["noise"].iloc[0] == pytest.approx(0.03, rel=0.4)


def test_a_noisy_default_makes_no_block_bend(draw_sweep: Draw) -> None:
    """Three sentinels are fitted by level, line and bend, so that only other configurations show the noise."""
    rng, dropped = np.random.default_rng(11), []
    for _ in range(100):
        runs = draw_sweep(rng, 3, 10, noise=0.025)
        runs.loc[runs["is_sentinel"], "throughput_ops"] *= np.exp(rng.normal(0, 0.085, runs["is_sentinel"].sum()))
        _, blocks = judge(runs)
        dropped.append((blocks["treatment"] == "dropped").sum())
    assert sum(dropped) <= 9  # of 300
    assert max(dropped) <= 1


def test_a_resumed_block_is_compared_within_its_sessions_only(draw_sweep: Draw) -> None:
    """After the break the machine is 40 % slower. Nobody must take that for an effect of what came later."""
    runs = draw_sweep(np.random.default_rng(6), 3, 20)
    later = (runs["block_id"] == "b0") & (runs["position"] >= 11)
    runs.loc[later, "session"] = "two"
    runs.loc[later, "throughput_ops"] *= 0.6
    effects, blocks = judge(runs)
    assert blocks.loc["b0", "sessions"].tolist() == [2, 2]
    assert blocks["treatment"].tolist() == ["none"] * 4
    assert effects["noise"].iloc[0] == pytest.approx(0.03, rel=0.3)
    assert effects["estimate"].abs().max() < 0.12
    assert effects["blocks"].unique().tolist() == [3]


def test_a_session_without_a_sentinel_is_dropped(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(7), 3, 20)
    changed = runs.index[(runs["block_id"] == "b1") & (runs["position"].between(3, 6))]
    assert not runs.loc[changed, "is_sentinel"].any()
    runs.loc[changed, "session"] = "two"
    effects, blocks = judge(runs)
    assert blocks.loc[("b1", "two"), "treatment"] == "dropped"
    assert "no successful run of the default configuration" in blocks.loc[("b1", "two"), "reason"]
    values = runs.loc[changed, "value"]
    assert effects.loc[values, "runs"].tolist() == [2] * 4
    assert effects.drop(values)["runs"].unique().tolist() == [3]


def test_a_block_whose_sentinels_failed_is_dropped(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(8), 3, 20)
    runs.loc[(runs["block_id"] == "b0") & runs["is_sentinel"], "throughput_ops"] = np.nan
    effects, blocks = judge(runs)
    assert blocks.loc[("b0", "one"), "treatment"] == "dropped"
    assert effects["runs"].unique().tolist() == [2]


def test_too_few_runs_cannot_tell_drift(draw_sweep: Draw) -> None:
    _, blocks = judge(draw_sweep(np.random.default_rng(9), 1, 1))
    assert blocks["drift_p"].isna().all()
    assert blocks["treatment"].tolist() == ["none"]
    assert blocks["reason"].tolist() == ["too few runs to tell drift from noise"]

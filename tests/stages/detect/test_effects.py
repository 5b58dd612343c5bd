"""Effects of single knobs: truth is found, noise is not, and what is missing stays unknown."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generated_studies import Study, Truth

from knobscope.specs import Knob
from knobscope.stages.detect import METRICS, effects_of_case, find_stalled_runs, steps_from
from knobscope.statistics.regression import adjust_for_fdr

Draw = Callable[..., pd.DataFrame]
Make = Callable[..., Study]


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "values", "least"), [(3, 20, 0.03), (2, 4, 0.01)])
def test_pure_noise_gives_discoveries_in_one_study_of_twenty(
    draw_sweep: Draw, blocks: int, values: int, least: float
) -> None:
    """When nothing has an effect, the false discovery rate is the share of studies with any discovery.

    Eight cells tell little of what a block does to a configuration, so intervals of such a study are wider.
    """
    rng, studies = np.random.default_rng(11), 40
    found, below = 0, []
    for _ in range(studies):
        effects, _ = effects_of_case(draw_sweep(rng, blocks, values), 0.05)
        p_values = effects.loc[effects["metric"] == "throughput_ops", "p_value"].to_numpy()
        found += bool((adjust_for_fdr(p_values) <= 0.05).any())
        below.append((p_values <= 0.05).mean())
    assert found / studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)
    assert least < np.mean(below) < 0.07


@pytest.mark.slow
def test_true_effects_lie_in_their_intervals(draw_sweep: Draw) -> None:
    rng, covered = np.random.default_rng(12), []
    for _ in range(60):
        runs = draw_sweep(rng, 3, 12)
        truth = runs["setting"] * 0.02
        runs["throughput_ops"] *= np.exp(truth)
        effects, _ = effects_of_case(runs, 0.05)
        one = effects[effects["metric"] == "throughput_ops"]
        covered += list(
            one["low"].lt(one["value"].astype(float) * 0.02) & one["high"].gt(one["value"].astype(float) * 0.02)
        )
    assert 0.93 < np.mean(covered) < 0.97


def test_equals_ordinary_least_squares_with_blocks(draw_sweep: Draw) -> None:
    """With few values, whose variances nobody can tell apart, and one run of each configuration per block."""
    import statsmodels.formula.api as smf

    runs = draw_sweep(np.random.default_rng(13), 3, 4).drop_duplicates(["block_id", "setting"])
    effects, blocks = effects_of_case(runs, 0.05)
    assert blocks["treatment"].unique().tolist() == ["none"]
    full = smf.ols("np.log(throughput_ops) ~ C(block_id) + C(setting, Treatment(0))", runs).fit()
    one = effects[effects["metric"] == "throughput_ops"]
    names = [f"C(setting, Treatment(0))[T.{value}]" for value in one["value"]]
    np.testing.assert_allclose(one["estimate"], full.params[names], atol=1e-8)
    np.testing.assert_allclose(one["p_value"], full.pvalues[names], atol=1e-8)
    np.testing.assert_allclose(one[["low", "high"]], full.conf_int().loc[names], atol=1e-8)
    sentinels = runs.loc[runs["is_sentinel"], "throughput_ops"]
    np.testing.assert_allclose(one["reference"], np.exp(np.log(sentinels).mean()))


@pytest.mark.parametrize(("blocks", "values"), [(1, 20), (2, 1)])
def test_one_block_has_estimates_without_intervals(draw_sweep: Draw, blocks: int, values: int) -> None:
    """The second case loses all but one run of the value, so that only one block compares it."""
    runs = draw_sweep(np.random.default_rng(14), blocks, values)
    if blocks == 2:
        runs.loc[(runs["block_id"] == "b1") & ~runs["is_sentinel"], "throughput_ops"] = np.nan
    effects, _ = effects_of_case(runs, 0.05)
    one = effects[effects["metric"] == "throughput_ops"]
    assert one["estimate"].notna().all()
    assert one[["low", "high", "p_value", "standard_error"]].isna().all(axis=None)


@pytest.mark.slow
def test_sixty_thousand_runs(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(15), 30, 1850)
    assert len(runs) > 60_000
    runs.loc[runs["value"] == "9", "throughput_ops"] *= 1.1
    effects, _ = effects_of_case(runs, 0.05)
    one = effects[effects["metric"] == "throughput_ops"].set_index("value")
    assert len(one) == 1850
    assert one.loc["9", "estimate"] == pytest.approx(np.log(1.1), abs=0.03)
    assert (adjust_for_fdr(one["p_value"].to_numpy()) <= 0.05).sum() == 1


def test_all_metrics_find_their_truth(make_study: Make) -> None:
    truth = Truth(throughput=-0.3, cpu=0.4, writes=0.5, unaligned=0.2, write_run=0.3, read_run=-0.2, depth_one=-0.4)
    truth = replace(truth, flushes=0.5, read_us=0.4, read_bytes=0.6, reads=0.2)
    study = make_study(truth={("page", "16"): truth}, reads_per_op=2.0)
    rows = study.query("FROM effects WHERE knob = 'page' AND value = '16'").set_index("metric")
    assert set(rows.index) == {name for name, metric in METRICS.items() if not metric.is_optional}
    close = {"abs": 0.06}
    assert rows.loc["throughput_ops", "estimate"] == pytest.approx(-0.3, **close)
    assert rows.loc["latency_p95_us", "estimate"] == pytest.approx(0.3, **close)
    assert rows.loc["latency_p99_us", "estimate"] == pytest.approx(0.3, **close)
    assert rows.loc["cpu_s_per_op", "estimate"] == pytest.approx(0.4, **close)
    assert rows.loc["writes_per_op", "estimate"] == pytest.approx(0.5, **close)
    assert rows.loc["write_bytes_per_op", "estimate"] == pytest.approx(0.5, **close)
    assert rows.loc["flushes_per_op", "estimate"] == pytest.approx(0.5, **close)
    assert rows.loc["unaligned_write_share", "estimate"] == pytest.approx(0.2, **close)
    assert rows.loc["unaligned_writes_per_op", "estimate"] == pytest.approx(2 * (np.exp(0.5) * 0.4 - 0.2), abs=0.1)
    assert rows.loc["write_sequential_share", "estimate"] == pytest.approx(0.3, **close)
    assert rows.loc["read_sequential_share", "estimate"] == pytest.approx(-0.2, **close)
    assert rows.loc["busy_depth", "estimate"] == pytest.approx(3 * 0.4, **close)
    assert rows.loc["reads_per_op", "estimate"] == pytest.approx(0.2, **close)
    assert rows.loc["read_bytes_per_op", "estimate"] == pytest.approx(0.8, **close)
    # 400 us of latency per operation, of two clients: 2.5 in flight before, 3.7 with this value.
    waited = 400 * (np.exp(0.6) * 2 / 3.7 - 2 / 2.5)
    for bound in ("read_us_per_op", "read_busy_us_per_op"):
        assert rows.loc[bound, "estimate"] == pytest.approx(waited, rel=0.2)
    assert (rows.loc[["latency_p95_rank", "latency_p99_rank"], "low"] > 0).all()
    assert rows.loc["unaligned_write_share", "reference"] == pytest.approx(0.2, **close)
    assert rows["unit"].unique().tolist() == ["kB"]
    assert rows["baseline"].unique().tolist() == ["4"]
    unmeasured = ["recovery_s", "lost_s"]
    assert rows.loc[unmeasured, ["estimate", "low", "high"]].isna().all(axis=None)
    rows = rows.drop(unmeasured)
    assert (rows["low"] <= rows["estimate"]).all()
    assert (rows["estimate"] <= rows["high"]).all()


def test_runs_that_failed_count_for_nothing(make_study: Make) -> None:
    """One value fails always, another one in one block of three; their numbers are absurd on purpose."""

    def fail(run: dict[str, Any]) -> None:
        if run["config_id"] == failing["always"] or (run["config_id"] == failing["once"] and run["repeat"] == 1):
            run.update(status="failed_run", throughput_ops=1e9)

    ids = make_study().query("FROM single_changes").set_index(["knob", "value"])["config_id"]
    failing = {"always": ids["buffer", "2"], "once": ids["buffer", "32"]}
    study = make_study(repeats=3, tweak=fail)
    rows = study.query("FROM effects WHERE metric = 'throughput_ops'").set_index(["knob", "value"])
    assert rows.loc[("buffer", "2"), "runs"] == 0
    assert pd.isna(rows.loc[("buffer", "2"), "estimate"])
    assert rows.loc[("buffer", "32"), "runs"] == 2
    assert abs(rows.loc[("buffer", "32"), "estimate"]) < 0.1
    assert study.query("SELECT count(*) AS n FROM ok_runs")["n"][0] == 36 - 4
    verdicts = study.judge("intuition").set_index(["knob", "value"])["verdict"]
    assert verdicts["buffer", "2"] == "insufficient"
    assert verdicts["buffer", "32"] == "none"


def test_procfs_runs_have_no_block_level_effects(make_study: Make) -> None:
    study = make_study(columns={"monitor": "procfs", "lost_events": None})
    known = study.query("SELECT metric, count(q_value) AS n FROM effects GROUP BY metric").set_index("metric")["n"]
    assert set(known.index[known > 0]) == {"throughput_ops", "latency_p95_us", "latency_p99_us", "cpu_s_per_op"} | {
        "latency_p95_rank",
        "latency_p99_rank",
    }
    assert set(known.index) == {name for name, metric in METRICS.items() if not metric.is_optional}


def test_q_values_are_over_the_whole_study(make_study: Make) -> None:
    study = make_study(devices=("hdd", "nvme"))
    rows = study.query("FROM effects WHERE metric = 'latency_p95_us'")
    assert len(rows) == 18
    np.testing.assert_allclose(rows["q_value"], adjust_for_fdr(rows["p_value"].to_numpy()))


def test_steps_follow_the_knobs_order(make_study: Make) -> None:
    steps = make_study().query("SELECT DISTINCT knob, value, step FROM effects").set_index(["knob", "value"])["step"]
    assert steps["page", "1"] == -1
    assert steps["page", "16"] == 1
    assert steps["sync", "none"] == -2
    assert steps["sync", "normal"] == -1
    assert steps["ahead", "true"] == 1
    assert steps["pause", "100"] == 1
    assert pd.isna(steps["pause", "0"])


def test_steps_without_a_spec_take_numbers_only() -> None:
    assert steps_from(None, "1.5", ["10", "0.5", "2"]) == {"10": 2, "0.5": -1, "2": 1}
    assert steps_from(None, "on", ["off"]) == {"off": None}


def test_steps_from_a_special_baseline_are_unknown() -> None:
    knob = Knob(
        type="real", range=[0.0, 9.0], special={-1: "automatic"}, default=-1, apply="restart", mechanism="other",
        source="https://example.org",
    )  # fmt: skip
    assert steps_from(knob, "-1.0", ["2.0", "5.0"]) == {"2.0": None, "5.0": None}


def throughput(runs: pd.DataFrame) -> pd.DataFrame:
    """Effects without runs that stalled, as in a study."""
    stalled = runs["run_id"].isin([run for run, _ in find_stalled_runs(runs)])
    effects, _ = effects_of_case(runs.assign(throughput_ops=runs["throughput_ops"].mask(stalled)), 0.05)
    return effects[effects["metric"] == "throughput_ops"].set_index("value")


def test_how_long_a_run_stalled_is_a_plain_number(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(21), 3, 20)
    runs.loc[runs.index[runs["value"] == "7"][1], "throughput_ops"] /= 1500
    ((_, reason),) = find_stalled_runs(runs)
    assert re.match(r"it stalled: 1,\d{3} times slower", reason)


def test_a_stall_is_told_by_the_measure_that_finds_it(draw_sweep: Draw) -> None:
    """A run at a fifth of its speed, in a block three times as fast as others, is hardly slower than theirs."""
    runs = draw_sweep(np.random.default_rng(21), 3, 20)
    runs.loc[runs["block_id"] == runs["block_id"].iloc[0], "throughput_ops"] *= 3
    runs.loc[runs.index[runs["value"] == "7"][0], "throughput_ops"] /= 5
    ((_, reason),) = find_stalled_runs(runs)
    assert 4.5 < float(reason.split()[2]) < 5.5, reason


def test_a_stalled_run_decides_no_effect(draw_sweep: Draw) -> None:
    """One run of value 7 and one of the default take ten times as long: a mean over three runs would be half of it."""
    runs = draw_sweep(np.random.default_rng(21), 3, 20)
    for stalled in (runs.index[runs["value"] == "7"][1], runs.index[runs["is_sentinel"]][4]):
        runs.loc[stalled, "throughput_ops"] /= 10
    reasons = dict(find_stalled_runs(runs))
    assert len(reasons) == 2
    assert all("it stalled: " in reason and "times slower than the median run" in reason for reason in reasons.values())
    one = throughput(runs)
    assert one["estimate"].abs().max() < 0.15
    assert (one["high"] - one["low"]).max() < 0.3
    assert one.loc["7", ["runs", "blocks"]].tolist() == [2, 2]


def test_a_value_that_is_always_slow_is_no_stall(draw_sweep: Draw) -> None:
    runs = draw_sweep(np.random.default_rng(22), 3, 20)
    runs.loc[runs["value"] == "7", "throughput_ops"] /= 10
    one = throughput(runs)
    assert not list(find_stalled_runs(runs))
    assert one.loc["7", "estimate"] == pytest.approx(-np.log(10), abs=0.1)
    assert one.loc["7", "p_value"] < 1e-6


@pytest.mark.slow
def test_a_noisy_value_has_a_wide_interval_and_no_finding(draw_sweep: Draw) -> None:
    """Value 7 is ten times as noisy as the others: with one common variance it was called an effect in most studies."""
    rng, found, widths = np.random.default_rng(23), 0, []
    for _ in range(30):
        runs = draw_sweep(rng, 3, 20)
        noisy = runs["value"] == "7"
        runs.loc[noisy, "throughput_ops"] *= np.exp(rng.normal(0, 0.3, int(noisy.sum())))
        one = throughput(runs)
        found += adjust_for_fdr(one["p_value"].to_numpy())[one.index.get_loc("7")] <= 0.05
        widths.append((one.loc["7", "high"] - one.loc["7", "low"]) / (one["high"] - one["low"]).median())
    assert found <= 3
    assert np.median(widths) > 3


@pytest.mark.slow
def test_repeats_on_one_server_instance_are_one_measurement(draw_sweep: Draw) -> None:
    """Each value three times in a row; the server instances differ by 10 %, repeats on one of them by 1 %."""
    rng, covered, found = np.random.default_rng(24), [], 0
    for _ in range(20):
        runs = draw_sweep(rng, 3, 12, noise=0.1)
        runs = runs.loc[runs.index.repeat(3)].reset_index(drop=True)
        runs["run_id"] = range(len(runs))
        runs["position"] = runs.groupby("block_id").cumcount()
        runs["throughput_ops"] *= np.exp(rng.normal(0, 0.01, len(runs)))
        one = throughput(runs)
        covered += list((one["low"] <= 0) & (one["high"] >= 0))
        found += (adjust_for_fdr(one["p_value"].to_numpy()) <= 0.05).any()
        assert set(one["runs"]) <= {6, 9}  # 6: one of three blocks bends by chance
    assert 0.92 < np.mean(covered) < 0.98
    assert found <= 3


def test_a_change_that_removes_all_writes_has_an_effect(draw_sweep: Draw) -> None:
    rng = np.random.default_rng(25)
    runs = draw_sweep(rng, 3, 20)
    runs["writes_per_op"] = 2 * np.exp(rng.normal(0, 0.03, len(runs)))
    runs.loc[runs["value"] == "7", "writes_per_op"] = 0.0
    effects, _ = effects_of_case(runs, 0.05)
    writes = effects[effects["metric"] == "writes_per_op"].set_index("value")
    assert writes.loc["7", "estimate"] < -0.9 * np.log(2)
    assert writes.loc["7", "p_value"] < 1e-4
    assert writes["estimate"].drop("7").abs().max() < 0.15


def test_nothing_outside_of_what_was_measured_gets_an_interval() -> None:
    """Two blocks whose lines are extrapolated: all runs lie within 3 %, so no effect can be larger."""
    rng = np.random.default_rng(26)
    rows = [(block, setting) for block in ("b0", "b1") for setting in (0, 1, 1, 2, 2, 3, 3)]
    runs = pd.DataFrame(rows, columns=["block_id", "setting"])
    runs["position"] = runs.groupby("block_id").cumcount()
    runs["throughput_ops"] = 1000 * np.exp(-0.005 * runs["position"] + rng.normal(0, 1e-4, len(runs)))
    one = throughput(as_case(runs))
    assert one[["low", "high", "p_value"]].isna().all(axis=None)


def as_case(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of view `sweep_metrics` to block_id, setting, position and throughput_ops."""
    is_sentinel = runs["setting"] == 0
    named = {"knob": "k", "value": runs["setting"].astype(str), "baseline": "0"}
    ids = {"run_id": range(len(runs)), "config_id": runs["setting"].astype(str), "reference_id": "0", "beside": None}
    missing = {name: np.nan for name in METRICS if name != "throughput_ops"}
    about = {"session": "one", "dbms": "d", "device": "v", "workload": "w", "is_sentinel": is_sentinel}
    return runs.assign(
        **missing, **about, **ids, **{key: np.where(is_sentinel, None, text) for key, text in named.items()}
    )


def test_an_order_that_goes_with_the_configurations_is_refused() -> None:
    """Default first, three repeats in a row, all equal, and one device loses 3 % a run: nothing may come out of it."""
    rng = np.random.default_rng(27)
    rows = [(f"b{block}", setting) for block in range(3) for setting in np.repeat(range(11), 3)]
    runs = pd.DataFrame(rows, columns=["block_id", "setting"])
    runs["position"] = runs.groupby("block_id").cumcount()
    runs["throughput_ops"] = 1000 * np.exp(-0.03 * runs["position"] + rng.normal(0, 0.01, len(runs)))
    effects, blocks = effects_of_case(as_case(runs), 0.05)
    assert blocks["treatment"].tolist() == ["dropped"] * 3
    assert blocks["reason"].str.contains("configurations and their order go together").all()
    assert effects["p_value"].isna().all()
    assert blocks["runs"].tolist() == [33] * 3
    # The same runs in random order: the drift is a term of the model, and nothing is found.
    shuffled = runs.groupby("block_id")["setting"].transform(rng.permutation)
    effects, blocks = effects_of_case(as_case(runs.assign(setting=shuffled)), 0.05)
    one = effects[effects["metric"] == "throughput_ops"]
    assert blocks["treatment"].tolist() == ["position"] * 3
    assert (adjust_for_fdr(one["p_value"].to_numpy()) > 0.05).all()

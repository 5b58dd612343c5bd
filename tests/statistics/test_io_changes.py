"""Changes of I/O between runs: simulated runs whose truth is known."""

from collections.abc import Mapping

import numpy as np
import pytest

from knobscope.statistics.io_changes import Change, IoNoise, Trial, judge_trials

NAMES = ("flushes_per_op", "timed_per_op", "rare_per_op", "write_size", "read_share")


def run(
    rng: np.random.Generator, *, speed: float = 1.0, flushes: float = 1.0, size: float = 8192.0
) -> dict[str, float]:
    """Return a run: operations flush, a timer writes, few requests come by chance; speed is another matter."""
    operations = 5000 * speed * rng.uniform(0.9, 1.1)
    counts = {"flushes_per_op": rng.poisson(flushes * operations), "timed_per_op": 800, "rare_per_op": rng.poisson(0.7)}
    shares = {"write_size": size * rng.uniform(0.98, 1.02), "read_share": rng.uniform(0.4, 0.5)}
    return {"operations": operations, **{name: count / operations for name, count in counts.items()}, **shares}


def judge(seed: int, pairs: int = 3, **change: float) -> Change:
    rng = np.random.default_rng(seed)
    references: list[Mapping[str, float]] = [run(rng) for _ in range(12)]
    trials = [Trial(run(rng, **change), (references[i], references[i + 1])) for i in range(pairs)]
    return judge_trials(trials, IoNoise.of(NAMES, [references]), smallest=0.05, looks=3, is_last=True)


@pytest.mark.parametrize(
    ("change", "response"), [({"flushes": 0.5}, "flushes_per_op"), ({"size": 65536.0}, "write_size")]
)
def test_more_and_larger_requests_are_a_change(change: dict[str, float], response: str) -> None:
    judged = [judge(seed, **change) for seed in range(20)]
    assert {(of.verdict, of.response) for of in judged} == {("related", response)}


def test_speed_alone_is_no_change_of_io() -> None:
    """Twice as fast, the timer writes half as much per operation, and operations flush twice as much per second."""
    assert [judge(seed, speed=2.0).verdict for seed in range(20)] == ["none"] * 20


def test_nothing_changes_seldom_looks_like_a_change() -> None:
    assert sum(judge(seed).verdict == "related" for seed in range(300)) <= 2


def test_a_small_change_does_not_count() -> None:
    assert {judge(seed, size=8192 * 1.03, pairs=8).verdict for seed in range(20)} == {"none"}


def test_the_mean_size_of_few_requests_says_nothing() -> None:
    rng = np.random.default_rng(1)
    references: list[Mapping[str, float]] = [run(rng) | {"writes_per_op": 2 / 5000} for _ in range(12)]
    larger = [run(rng, size=20000.0) | {"writes_per_op": 2 / 5000} for _ in range(3)]
    trials = [Trial(row, (references[i], references[i + 1])) for i, row in enumerate(larger)]
    assert judge_trials(trials, IoNoise.of(NAMES, [references]), 0.05, 3, is_last=True).verdict == "none"


def test_one_pair_decides_nothing() -> None:
    assert judge(0, pairs=1, flushes=0.1).verdict == "open"


def test_differences_that_share_a_run_count_for_less() -> None:
    """Of six runs in a row there are five differences, as good as 3.6 independent ones."""
    rng = np.random.default_rng(1)
    noise = IoNoise.of(NAMES, [[run(rng) for _ in range(6)]])
    assert noise.degrees[0, 0] == pytest.approx(50 / 14)

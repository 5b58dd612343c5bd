"""Ranks and slopes are those of scipy.stats, which no command has to import for them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, rankdata, theilslopes

from knobscope.statistics.ranks import is_larger, median_slope, rank_values

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("count", [2, 3, 10, 61])
def test_ranks_and_slopes_are_those_of_scipy(count: int) -> None:
    rng = np.random.default_rng(count)
    for values in (rng.normal(size=count), rng.integers(0, 4, count).astype(float), np.full(count, 3.0)):
        assert rank_values(values).tolist() == rankdata(values).tolist()
        assert median_slope(values) == pytest.approx(theilslopes(values).slope, rel=1e-12)


def test_no_command_waits_for_scipy_stats() -> None:
    """Half a second of processor time in each process that imports it, and each stage is a process."""
    modules = list(SOURCE.rglob("*.py"))
    assert len(modules) > 200
    assert [path.name for path in modules if "from scipy.stats" in path.read_text()] == []


@pytest.mark.parametrize("sizes", [(3, 3), (5, 5), (4, 9)])
def test_larger_values_are_those_of_scipy(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(20261127)
    for _ in range(200):
        values, others = (rng.integers(0, 6, size).astype(float) for size in sizes)
        if len({*values, *others}) > 1:
            p = mannwhitneyu(values, others, alternative="greater", method="asymptotic").pvalue
            assert is_larger(values, others, 0.05) == (p <= 0.05)
    assert not is_larger(values, values[:0], 0.05)
    assert not is_larger(np.zeros(4), np.zeros(4), 0.05)

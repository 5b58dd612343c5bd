"""Ranks and slopes are those of scipy.stats, which no command has to import for them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata, theilslopes

from knobscope.statistics.ranks import median_slope, rank_values

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

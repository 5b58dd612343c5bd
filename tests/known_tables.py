"""Generated tables with a known truth, and the way to the measured ones."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

MEASURED = Path(__file__).parents[2] / "shared" / "data"


def measured(name: str) -> Path:
    """Path of a table that others measured; the test is skipped where it is absent."""
    path = MEASURED / name
    if not path.exists():
        pytest.skip(f"no measured table {name} in ../shared/data beside this checkout")
    return path


def grid(**levels: list[float]) -> pd.DataFrame:
    """Every combination of levels, one row each."""
    return pd.DataFrame(list(product(*levels.values())), columns=list(levels))


def known_grid(noise: float = 0.02, seed: int = 0) -> pd.DataFrame:
    """432 settings: `page` doubles the response, `flush` and `cache` interact, `log` matters little, two do nothing."""
    table = grid(
        page=[4, 8, 16],
        flush=[0, 1, 2],
        cache=[64, 256, 1024],
        log=[1, 2],
        idle=[1, 2],
        other=[1, 2, 3, 4],
    )
    effect = 100 * table.page.map({4: 1.0, 8: 1.5, 16: 2.0})
    effect += 60 * ((table.flush == 1) & (table.cache == 64)) + 20 * (table.flush == 2) + 8 * (table.log == 2)
    rng = np.random.default_rng(seed)
    table["y"] = effect * np.exp(rng.normal(0, noise, len(table)))
    return table

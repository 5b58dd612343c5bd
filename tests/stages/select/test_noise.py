"""Noise between sentinels, as the plan of the sweep is told: within sessions of blocks, of runs that went well."""

from pathlib import Path

import numpy as np
import pytest

from knobscope.stages.select.noise import measure_noise
from knobscope.tables import write_table


def write_block(folder: Path, name: str, throughputs: list[float], status: str = "ok", sentinel: bool = True) -> Path:
    about = {"block_id": name, "session": "one", "status": status, "is_sentinel": sentinel}
    write_table(folder / name / "runs.parquet", "runs", [{**about, "throughput_ops": one} for one in throughputs])
    return folder / name


@pytest.mark.slow
def test_noise_is_that_within_blocks_of_runs_of_the_default_configuration(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    blocks = [
        write_block(tmp_path, f"b{number}", list(1000 * np.exp(number + rng.normal(0, 0.1, 3)))) for number in range(40)
    ]
    others = [
        write_block(tmp_path, "failed", [1.0, 1000.0], status="timeout"),
        write_block(tmp_path, "changed", [1.0, 1000.0], sentinel=False),
    ]
    noise = measure_noise([*blocks, *others])
    assert noise is not None
    assert noise["runs"] == 120
    assert noise["sd"] == pytest.approx(0.1, rel=0.25)


def test_noise_of_single_runs_is_not_known(tmp_path: Path) -> None:
    assert measure_noise([write_block(tmp_path, "a", [1000.0]), write_block(tmp_path, "b", [2000.0])]) is None

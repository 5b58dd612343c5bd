"""A finished study that is told to measure its noisy values again: until they suffice, or as often as it allows."""

from pathlib import Path
from typing import Any

import pytest
import studies

from knobscope.durable_files import read_sealed

pytestmark = [pytest.mark.real, pytest.mark.long]


def run(folder: Path, most: int, effect: float) -> str:
    """Run the study with these limits; returns what Snakemake said."""
    sweep = f"sweep: {{repeats: 2, most: {most}, effect: {effect}, always"
    studies.write_study(folder, "small", studies.SMALL.replace("sweep: {repeats: 2, always", sweep))
    return studies.call(folder, "small")


def decisions(folder: Path) -> list[dict[str, Any]]:
    return [
        read_sealed(path) for path in sorted((folder / "results/small/sqlite/local-disk/ycsb-a/repeat").glob("*.json"))
    ]


def started(folder: Path) -> dict[str, str]:
    return dict(studies.query(folder, "small", "SELECT run_id, started_at::VARCHAR FROM runs"))


def blocks_of_values(folder: Path) -> dict[str, int]:
    """Count the blocks of each value in the database."""
    sql = "SELECT config_id, count(DISTINCT block_id) FROM runs WHERE phase = 'sweep' AND NOT is_sentinel GROUP BY ALL"
    return dict(studies.query(folder, "small", sql))


@pytest.mark.long
def test_values_are_measured_until_the_most_and_no_run_is_measured_twice(small_study: Path) -> None:
    before = started(small_study)
    said = run(small_study, 3, 1.001)  # an effect that noise always hides
    assert "2 blocks, 3 at most where noise hides effects of 1.001x" in said
    last = decisions(small_study)[-1]
    assert last["done"] and last["blocks"] == 3
    assert "3 blocks, the most that the study allows, were not enough for " in last["reason"]
    assert all(value["smallest_effect"] > 1.001 for value in last["values"])
    assert set(blocks_of_values(small_study).values()) == {3}
    assert before.items() <= started(small_study).items()
    noise = studies.query(small_study, "small", "SELECT DISTINCT noise FROM effects WHERE metric = 'throughput_ops'")
    assert noise[0][0] > 0
    studies.assert_stays_finished(small_study, "small")


def test_large_effects_need_no_more_and_leave_further_rounds_aside(small_study: Path) -> None:
    said = run(small_study, 5, 90.0)
    first = decisions(small_study)[0]
    assert first["done"] and first["more"] == 0, first["reason"]
    assert set(blocks_of_values(small_study).values()) == {2}
    assert "rule measure:" not in said

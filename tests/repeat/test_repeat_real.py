"""A real study that measures its noisy values again: until they suffice, or as often as it allows."""

from pathlib import Path
from typing import Any

import pytest
import studies

from knobscope.storage import read_sealed

pytestmark = [pytest.mark.real, pytest.mark.long(minutes=2)]
CASE = "sqlite/here/ycsb-a"


def run(folder: Path, most: int, effect: float, *more: str) -> str:
    """Run the study with these limits; returns what Snakemake said."""
    sweep = f"sweep: {{repeats: 2, most: {most}, effect: {effect}, always"
    text = studies.SMALL.replace("small", "again", 1).replace("sweep: {repeats: 2, always", sweep)
    studies.write_study(folder, "again", text)
    return studies.call(folder, "again", *more)


def decisions(folder: Path) -> list[dict[str, Any]]:
    return [read_sealed(path) for path in sorted((folder / f"results/again/{CASE}/repeat").glob("*.json"))]


def blocks_of_values(folder: Path) -> dict[str, int]:
    """Count the blocks of each value in the database."""
    sql = "SELECT config_id, count(DISTINCT block_id) FROM runs WHERE phase = 'sweep' AND NOT is_sentinel GROUP BY ALL"
    return dict(studies.query(folder, "again", sql))


@pytest.fixture(scope="module")
def project(device_profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished study, in which no effect is too small to be asked for."""
    folder = studies.make_folder(tmp_path_factory.mktemp("again"))
    studies.place_profile(folder, device_profile, "again")
    said = run(folder, 4, 1.001)
    assert "2 blocks, 4 at most where noise hides effects of 1.001x" in said
    return folder


def test_values_are_measured_until_the_most_and_the_reason_is_told(project: Path) -> None:
    last = decisions(project)[-1]
    assert last["done"] and last["blocks"] == 4
    assert "4 blocks, the most that the study allows, were not enough for " in last["reason"]
    assert all(value["smallest_effect"] > 1.001 for value in last["values"])
    measured = blocks_of_values(project)
    assert set(measured.values()) == {4}
    used = studies.query(project, "again", "SELECT DISTINCT blocks FROM effects WHERE metric = 'throughput_ops'")
    assert all(2 <= blocks <= 4 for (blocks,) in used)
    noise = studies.query(project, "again", "SELECT DISTINCT noise FROM effects WHERE metric = 'throughput_ops'")
    assert noise[0][0] > 0
    assert "Nothing to be done" in run(project, 4, 1.001)


def test_another_limit_adds_what_is_missing_and_measures_nothing_twice(project: Path) -> None:
    run(project, 4, 1.001)
    before = dict(studies.query(project, "again", "SELECT run_id, started_at::VARCHAR FROM runs"))
    said = run(project, 5, 1.001)
    after = dict(studies.query(project, "again", "SELECT run_id, started_at::VARCHAR FROM runs"))
    assert before.items() <= after.items()
    assert set(blocks_of_values(project).values()) == {5}
    assert "go on after" in said


def test_large_effects_need_no_more_and_leave_further_rounds_aside(project: Path) -> None:
    said = run(project, 5, 90.0)
    first = decisions(project)[0]
    assert first["done"] and first["more"] == 0, first["reason"]
    assert set(blocks_of_values(project).values()) == {2}
    assert "rule measure:" not in said

"""What `snakemake --rulegraph` shows of a study that has not begun."""

import re
from pathlib import Path

import pytest
import studies

pytestmark = pytest.mark.real


def list_rules(folder: Path) -> dict[str, set[str]]:
    """Return the rules of a graph, each with those that it takes something of."""
    told = studies.call(folder, "small", "--rulegraph")
    names = dict(re.findall(r'^\s*(\d+)\[label = "(\w+)"', told, re.MULTILINE))
    needs: dict[str, set[str]] = {name: set() for name in names.values()}
    for source, target in re.findall(r"^\s*(\d+) -> (\d+)$", told, re.MULTILINE):
        needs[names[target]].add(names[source])
    return needs


@pytest.mark.parametrize(
    "repeats", [pytest.param("2", marks=pytest.mark.long), "2, most: 4"], ids=["once", "more rounds"]
)
def test_the_one_at_a_time_half_is_shown_before_the_first_fit(tmp_path: Path, repeats: str) -> None:
    studies.make_folder(tmp_path)
    studies.write_study(tmp_path, "small", studies.SMALL.replace("repeats: 2", f"repeats: {repeats}"))
    needs = list_rules(tmp_path)
    assert "select" in needs["plan_sweep"] and "plan_sweep" in needs["measure"]
    assert {"plan_sweep", "measure", "select"} <= needs["detect"]
    assert ("reinforce" in needs) == ("most" in repeats)
    assert not (tmp_path / "results/small/report.html").exists()

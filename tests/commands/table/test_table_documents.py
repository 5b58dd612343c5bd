"""What `replay`, `rank` and `trend` really write is what their schemas say."""

import json
from pathlib import Path

import jsonschema
import pytest
from json_documents import read_document
from known_tables import known_grid

from knobscope.cli import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = known_grid().iloc[::3].reset_index(drop=True)  # the form of a document does not depend on their number
    rows.loc[:20, "y"] = -1  # failed
    rows.to_csv(tmp_path / "grid.csv", index=False)
    return tmp_path / "grid.csv"


def write(command: str, table: Path, *arguments: str) -> str:
    out = table.with_suffix(".json")
    full = [command, str(table), "--response", "y", "--failed-value=-1", "--json", str(out), *arguments]
    assert main(full) == 0
    return out.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("replay", ["--trials", "2", "--jobs", "1"]),
        ("replay", ["--trials", "1", "--jobs", "1", "--model", "anova", "--stop", "both", "--step", ".3"]),
        ("rank", ["--samples", "60", "--draws", "2", "--jobs", "1", "--model", "anova"]),
        ("rank", ["--model", "anova"]),
        ("trend", ["--factor", "page", "--adjust"]),
    ],
)
def test_real_output_fits_the_schema(command: str, arguments: list[str], table: Path) -> None:
    document = read_document(command, write(command, table, *arguments))
    with pytest.raises(jsonschema.ValidationError):
        read_document(command, json.dumps({**document, "unheard_of": 1}))

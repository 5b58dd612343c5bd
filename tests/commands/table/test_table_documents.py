"""What `replay`, `rank` and `trend` really write is what their schemas say, and the schemas on disk are current."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from known_tables import known_grid

from knobscope.cli import main
from knobscope.commands.table.documents import DOCUMENTS, render_schemas

SCHEMAS = Path(__file__).parents[3] / "docs/reference/schemas"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = known_grid().iloc[::3].reset_index(drop=True)  # the form of a document does not depend on their number
    rows.loc[:20, "y"] = -1  # failed
    rows.to_csv(tmp_path / "grid.csv", index=False)
    return tmp_path / "grid.csv"


def write(command: str, table: Path, *arguments: str) -> Any:
    out = table.with_suffix(".json")
    full = [command, str(table), "--response", "y", "--failed-value=-1", "--json", str(out), *arguments]
    assert main(full) == 0
    return json.loads(out.read_text())


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
    document = write(command, table, *arguments)
    schema = json.loads((SCHEMAS / f"{command}.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    DOCUMENTS[command].model_validate(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**document, "unheard_of": 1})


def test_schemas_on_disk_are_current() -> None:
    on_disk = {path.name: path.read_text() for path in SCHEMAS.glob("*.json")}
    assert on_disk == render_schemas(), "run `make docs`"

"""What is generated from the models is current, and agrees with the specs that are shipped."""

import json
import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from knobscope.specs import find_specs, render_reference, render_schemas, validate_files
from knobscope.specs.documents.schema import model_schemas
from knobscope.specs.reading.source import load_document

ROOT = Path(__file__).parents[2]
SPECS = find_specs([ROOT / "specs"])
KIND = {
    "dbms": "dbms",
    "devices": "device",
    "workloads": "workload",
    "generators": "generator",
    "studies": "study",
    "exclusions": "exclusions",
}


@pytest.mark.parametrize("name", sorted(render_schemas()))
def test_schemas_are_current(name: str) -> None:
    assert (ROOT / "specs/schemas" / name).read_text() == render_schemas()[name], "run `knobscope schema`"


def test_reference_is_current() -> None:
    assert (ROOT / "docs/reference/specs.md").read_text() == render_reference(), "run `knobscope schema`"


def test_every_field_is_described() -> None:
    for kind, schema in model_schemas().items():
        for name, model in {kind: schema, **schema.get("$defs", {})}.items():
            assert model["description"], name
            assert not [key for key, node in model["properties"].items() if not node.get("description")], name


@pytest.mark.slow
def test_shipped_specs_are_valid() -> None:
    assert validate_files(SPECS, ROOT)
    assert {path.parent.name for path in SPECS} == set(KIND)


@cache
def validator_of(kind: str) -> jsonschema.Draft202012Validator:
    """What an editor checks specs of a kind with; most of the time goes into whether the schema itself is one."""
    schema = json.loads((ROOT / f"specs/schemas/{kind}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_editor_accepts_shipped_specs(path: Path) -> None:
    kind = KIND[path.parent.name]
    # JSON has text keys only; an editor sees the keys of `special` and `reads_back` as text as well.
    data = json.loads(json.dumps(load_document(path).data))
    validator_of(kind).validate(data)
    first = path.read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../schemas/{kind}.json"


def test_what_installs_a_program_is_a_script_of_ours_or_an_address() -> None:
    """Messages continue with it: "no program at mongod; install it: see https://..."."""
    ways = {
        (path.stem, wanted["install"])
        for path in SPECS
        for group in ("programs", "paths")
        for wanted in (load_document(path).data.get(group) or {}).values()
        if "install" in wanted
    }
    strange = {
        (name, way) for name, way in ways if not (way.startswith("see https://") or (ROOT / way.split()[0]).is_file())
    }
    assert len(ways) > 5
    assert not strange


def test_a_value_without_arguments_is_what_the_server_does_by_itself() -> None:
    """The report's settings to copy are for servers whose start is not that of the spec."""
    unwritten = [
        (path.stem, name, value, knob.get("built_in", knob["default"]))
        for path in SPECS
        for name, knob in load_document(path).data.get("knobs", {}).items()
        if KIND[path.parent.name] == "dbms"
        for value, written in knob.get("writing", {}).get("by_value", {}).items()
        if not written
    ]
    assert unwritten
    assert [one for one in unwritten if one[2] != one[3]] == []


def test_guide_to_a_new_dbms_is_a_valid_spec(tmp_path: Path) -> None:
    """The YAML blocks of the guide, one after the other, are the file that it builds."""
    guide = (ROOT / "docs/how-to/adding-a-dbms.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "dbms").mkdir()
    file = tmp_path / "dbms/mariadb.yaml"
    file.write_text("".join(blocks))
    assert validate_files([file], tmp_path) == [file]


def test_guide_speaks_of_every_field() -> None:
    guide = (ROOT / "docs/how-to/adding-a-dbms.md").read_text()
    schema = model_schemas()["dbms"]
    for name, model in {"Dbms": schema, **schema["$defs"]}.items():
        missing = [key for key in model["properties"] if not re.search(rf"`{key}`|^ *{key}:|[{{ ]{key}:", guide, re.M)]
        assert not missing, f"{name}: {missing}"

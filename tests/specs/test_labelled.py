"""Settings of other DBMSs, which the guess of a mechanism learns from."""

import json
from pathlib import Path
from typing import Any

import pytest

from knobscope.specs import SpecErrors, read_labelled_settings

SHIPPED = sorted((Path(__file__).parents[2] / "specs/dbms/labelled").glob("*.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_lists_say_where_they_are_from(path: Path) -> None:
    listed = read_labelled_settings(path)
    assert listed.dbms == path.stem
    assert "License" in listed.source or "no licence named in the file" in listed.source
    assert all(len(one.description) <= 250 and "\n" not in one.description for one in listed.knobs.values())


def test_all_errors_in_a_list_are_reported_at_once(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {
        "dbms": "own",
        "version": "1",
        "source": "me",
        "knobs": {"a.b": {"description": "", "mechanism": "flush"}, "c": {"description": "C.", "mechanism": "magic"}},
    }
    path = tmp_path / "own.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(SpecErrors) as error:
        read_labelled_settings(path)
    assert [problem.key for problem in error.value.problems] == ["knobs.a.b.description", "knobs.c.mechanism"]


def test_invalid_json_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"dbms": "own",\n"knobs"}')
    with pytest.raises(SpecErrors, match=r"own\.json:2: file: found no JSON"):
        read_labelled_settings(path)

"""The shipped lists of all knobs: a study may name what they hold, and nothing else changes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.cli import main
from knobscope.commands.introspect import read_settings
from knobscope.errors import UserError
from knobscope.specs import Dbms, SpecErrors, catalogue_file, load_study, read_knob_catalogue, read_spec

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "specs/dbms/catalogue").glob("*.json"))

LEAST = {
    "sqlite": 24,
    "wiredtiger": 60,
    "mongodb": 60,
    "oracle": 110,
    "duckdb": 60,
    "redis": 80,
    "valkey": 80,
    "rocksdb": 100,
    "cassandra": 200,
    "postgresql": 230,
}

STUDY = """\
name: mine
description: A knob of the catalogue beside a curated one.
dbms: [mariadb]
devices: [memory]
workloads: {ycsb-a: }
knobs:
  mariadb:
    innodb_io_capacity:
    KNOB
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for kind in ("dbms", "devices", "workloads", "generators"):
        shutil.copytree(ROOT / "specs" / kind, tmp_path / kind)
    (tmp_path / "studies").mkdir()
    return tmp_path


def study_with(shelf: Path, knob: str) -> Path:
    path = shelf / "studies/mine.yaml"
    path.write_text(STUDY.replace("KNOB", knob))
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_list_is_whole_and_holds_nothing_that_no_study_varies(path: Path) -> None:
    spec = ROOT / f"specs/dbms/{path.stem}.yaml"
    catalogue = read_knob_catalogue(catalogue_file(spec))
    assert catalogue is not None
    assert catalogue.dbms == path.stem
    left_out = [name for names in catalogue.left_out.values() for name in names]
    assert left_out
    assert len({*left_out, *catalogue.knobs}) == len(left_out) + len(catalogue.knobs)
    assert len(catalogue.knobs) >= LEAST.get(path.stem, 260)
    assert not {"port", "server_id", "skip_networking", "ssl", "read_only"} & set(catalogue.knobs)
    dbms = read_spec(spec, Dbms, None)[1]
    assert {knob.apply for knob in catalogue.knobs.values()} <= set(dbms.writing)
    for name, knob in dbms.knobs.items():
        its = catalogue.knobs.get(name)
        if its is None or its.type != knob.type or knob.built_in is None:
            continue
        if knob.own_default is None:  # a number of the machine
            assert (its.default, its.built_in) == (knob.default, knob.built_in), name
        else:
            assert (its.default, its.built_in) == (knob.own_default, None), name


@pytest.mark.parametrize("name", ["mariadb", "mysql", "postgresql", "postgresql18"])
def test_specs_apply_knobs_when_the_dbms_takes_them(name: str) -> None:
    spec = ROOT / f"specs/dbms/{name}.yaml"
    catalogue = read_knob_catalogue(catalogue_file(spec))
    assert catalogue is not None
    knobs = {key: knob for key, knob in read_spec(spec, Dbms, None)[1].knobs.items() if key in catalogue.knobs}
    assert len(knobs) > 30
    wrong = {key for key, knob in knobs.items() if knob.apply not in ("load", catalogue.knobs[key].apply)}
    assert wrong == set()


@pytest.mark.parametrize("name", ["mongodb", "oracle"])
def test_a_list_of_settings_in_a_file_gives_the_shipped_catalogue(name: str, tmp_path: Path) -> None:
    listed = ROOT / f"setup/settings/{name}.jsonl"
    out = tmp_path / f"{name}.json"
    assert main(["introspect", name, "--settings", str(listed), "--out", str(out), "--root", str(ROOT)]) == 0
    made, shipped = (json.loads(path.read_text()) for path in (out, ROOT / f"specs/dbms/catalogue/{name}.json"))
    assert {**made, "asked": ""} == {**shipped, "asked": ""}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('{"version": "1"}\n{"type": "int"}\n', "settings.jsonl:2: found .*expected a JSON object with `name`"),
        ('{"name": "port"}\n', "settings.jsonl:1: found .*expected a JSON object with `version`"),
        ('{"version": "1"}\nport\n', "settings.jsonl:2: found 'port'"),
        (
            '{"version": "1"}\n{"name": "port", "typ": "int"}\n',
            r"settings.jsonl:2: typ: found an unknown key; expected type \(did you mean that\?\)",
        ),
        ('{"version": "1"}\n{"name": "port"}\n{"name": "port"}\n', "settings.jsonl:3: found 'port' a second time"),
    ],
)
def test_a_list_that_cannot_be_read_names_its_line(lines: str, problem: str, tmp_path: Path) -> None:
    listed = tmp_path / "settings.jsonl"
    listed.write_text(lines)
    with pytest.raises(UserError, match=problem):
        read_settings(listed)


def test_a_dbms_that_cannot_be_asked_names_the_way_out(refuses: Callable[..., str]) -> None:
    assert "list them in a file, and name it with --settings" in refuses("introspect", "wiredtiger", "--root", ROOT)


def test_a_study_takes_what_it_names_and_the_curated_part_wins(shelf: Path) -> None:
    curated = read_spec(shelf / "dbms/mariadb.yaml", Dbms, None)[1]
    specs = load_study(study_with(shelf, "key_buffer_size: {range: [8388608, 67108864]}"), shelf, runnable=False)
    knobs = specs.dbms["mariadb"].knobs
    assert set(knobs) - set(curated.knobs) == {"key_buffer_size"}
    assert knobs["key_buffer_size"].mechanism == "cache"
    assert knobs["innodb_io_capacity"] == curated.knobs["innodb_io_capacity"]


def test_a_misspelt_knob_of_the_catalogue_is_guessed(shelf: Path) -> None:
    with pytest.raises(SpecErrors, match=r"knobs.mariadb.key_bufer_size: .*expected key_buffer_size \(did you mean"):
        load_study(study_with(shelf, "key_bufer_size:"), shelf, runnable=False)


def test_a_value_outside_the_catalogue_is_refused(shelf: Path) -> None:
    with pytest.raises(SpecErrors, match=r"knobs.mariadb.key_buffer_size.values.0: found -1; .*outside"):
        load_study(study_with(shelf, "key_buffer_size: {values: [-1, 8388608]}"), shelf, runnable=False)


def test_keys_of_special_are_numbers_again(shelf: Path) -> None:
    knobs = json.loads((shelf / "dbms/catalogue/mysql.json").read_text())["knobs"]
    name = next(name for name, knob in knobs.items() if "special" in knob)
    catalogue = read_knob_catalogue(catalogue_file(shelf / "dbms/mysql.yaml"))
    assert catalogue is not None
    assert catalogue.knobs[name].default in catalogue.knobs[name].special


def test_a_broken_list_names_its_line(shelf: Path) -> None:
    (shelf / "dbms/catalogue/mariadb.json").write_text('{\n "dbms": \n}\n')
    with pytest.raises(SpecErrors, match=r"catalogue/mariadb.json:3: file: found no JSON"):
        load_study(study_with(shelf, "key_buffer_size:"), shelf, runnable=False)

"""Negative controls: every study of a whole DBMS has them, and servers take their values without a difference."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped_specs import ROOT, shipped_dbms
from short_runs import assert_whole, read_dbms, run_once

from knobscope.specs import Dbms, Value

STUDIES = sorted(ROOT.glob("specs/studies/*-io.yaml"))
#: Whose controls every test run looks at; those of the others are for `make test-long`.
OFTEN = ("sqlite-io",)


def read_study(path: Path) -> tuple[str, dict[str, Any]]:
    study = yaml.safe_load(path.read_text())
    (name,) = study["dbms"]
    return name, study


def controls_of(dbms: Dbms, study: dict[str, Any]) -> dict[str, list[Value]]:
    """The controls that a study varies, each with the values beside its default."""
    found = {}
    for name, choice in study["knobs"][dbms.name].items():
        knob = dbms.knobs[name]
        if knob.control:
            values = choice["values"] if choice else knob.possible_values
            found[name] = [value for value in values if value != knob.default]
    return found


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_whole_study_measures_three_knobs_that_change_nothing(path: Path) -> None:
    name, study = read_study(path)
    dbms = shipped_dbms(name)
    controls = controls_of(dbms, study)
    assert len(controls) >= 3
    assert set(controls) <= set(study["sweep"]["always"])  # they would hardly be selected
    assert all(controls.values())


@pytest.mark.real
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in OFTEN else pytest.mark.long) for path in STUDIES],
    ids=lambda path: path.stem,
)
def test_every_control_is_in_force(path: Path, open_directory: Path) -> None:
    name, study = read_study(path)
    dbms = read_dbms(name)
    configuration = {knob: values[-1] for knob, values in controls_of(dbms, study).items()}
    workload, change = next(iter(study["workloads"].items()))
    load = {"threads": change["threads"]} if "threads" in change else {}  # two of DuckDB conflict now and then
    record = run_once(dbms, configuration, open_directory, workload, **load)
    assert_whole(record, configuration, dbms)
    if name not in ("wiredtiger",):  # takes the options of its connection on trust
        asked = {row["knob"]: row["effective"] for row in record["effective_values"]}
        assert all(asked.values()), asked

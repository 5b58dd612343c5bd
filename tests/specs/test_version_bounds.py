"""Which versions of a DBMS a spec and its knobs are for."""

import pytest
from shipped_specs import ROOT, shipped_dbms

from knobscope.specs import read_spec
from knobscope.specs.checks.check import find_version_misfits
from knobscope.specs.models.study import Study


@pytest.mark.parametrize(("version", "fits"), [("8.4.6", False), ("9.0.1", True), ("9.7.0", True), ("10.0.0", False)])
def test_a_server_of_another_major_version_is_said_at_the_study(version: str, fits: bool) -> None:
    study = read_spec(ROOT / "specs/studies/mysql-quick.yaml", Study, None)[1]
    mysql = shipped_dbms("mysql")
    expected = [] if fits else [(("dbms", 0), "mysql.yaml is for versions from 9 on and up to 9")]
    assert list(find_version_misfits(study, mysql, version)) == expected


def test_knobs_are_bound_where_only_the_client_knows_the_version() -> None:
    study = read_spec(ROOT / "specs/studies/sqlite-quick.yaml", Study, None)[1]
    sqlite = shipped_dbms("sqlite")
    assert sqlite.version is None
    name = next(iter(study.knobs["sqlite"]))
    knob = sqlite.knobs[name].model_copy(update={"since": "4"})
    late = sqlite.model_copy(update={"knobs": {**sqlite.knobs, name: knob}})
    assert list(find_version_misfits(study, late, "3.46.1")) == [(("knobs", "sqlite", name), "from 4 on")]

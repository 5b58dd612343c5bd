"""A layout becomes knobs: what is planned, stored and swept is what a study says of its parts."""

from pathlib import Path

import pytest
from shipped_specs import shipped_study

from knobscope.identity import data_identity, run_identity
from knobscope.specs import Case, SpecErrors, StudySpecs, load_study
from knobscope.stages.plan import case_space
from knobscope.stages.plan.rounds import plan_sweep

STUDY = """name: laid_out
description: x
dbms: [server]
devices: [image]
workloads: {mix: }
knobs:
  server:
    flush:
"""
CASE = Case("server", "image", "mix")


def load(shelf: Path, layout: str) -> StudySpecs:
    (shelf / "studies/laid_out.yaml").write_text(f"{STUDY}layout:\n  server: {layout}\n" if layout else STUDY)
    return load_study(shelf / "studies/laid_out.yaml", shelf, runnable=False)


def test_a_list_of_devices_is_swept_like_a_knob_and_one_device_is_in_the_baseline(shelf: Path) -> None:
    specs = load(shelf, "{log: [fast, fast-flush], table.rows: fast}")
    space = case_space(specs, CASE)
    assert space.levels["device.log"] == ["data", "fast", "fast-flush"]
    assert space.default == {"flush": True, "device.log": "data", "device.table.rows": "fast"}
    planned = {row["configuration"] for row in plan_sweep(specs, CASE, ["device.log"])}
    assert len(planned) == 3
    assert specs.layout_devices("server") == ["fast", "fast-flush"]
    assert set(specs.devices) == {"image", "fast", "fast-flush"}
    assert [case.device for case in specs.cases] == ["image"]


def test_statements_of_a_part_get_its_name(shelf: Path) -> None:
    parts = load(shelf, "{table.rows: fast}").dbms["server"].layout_parts
    assert parts["table.rows"].load == ["create space table.rows at '{directory}'", "move rows to table.rows"]


def test_parts_count_for_data_and_runs_only_where_a_study_homes_them(shelf: Path) -> None:
    plain, log, table = (load(shelf, layout) for layout in ("", "{log: fast}", "{table.rows: fast}"))
    workload = plain.workloads["mix"]
    loaded = [data_identity(specs.dbms["server"], workload, None, []) for specs in (plain, log, table)]
    assert loaded[0] == loaded[1]
    assert "parts" not in loaded[0]
    assert loaded[2]["parts"] == {"table.rows": ["create space table.rows at '{directory}'", "move rows to table.rows"]}
    assert {"parts", "devices"} & set(run_identity(plain, CASE, "screen", ["flush"])) == set()
    assert list(run_identity(log, CASE, "screen", ["flush"])["devices"]) == ["fast"]


def test_files_of_a_part_are_known_where_a_study_lays_it_out() -> None:
    plain, laid_out = (shipped_study(name).dbms["sqlite"].files for name in ("sqlite-datacenter", "sqlite-table"))
    assert (plain.role_of("history.table"), plain.table_of("history.table", {})) == ("other", None)
    assert (laid_out.role_of("history.table"), laid_out.table_of("history.table", {})) == ("data", "history")


def test_a_device_that_others_use_is_refused(shelf: Path) -> None:
    (shelf / "devices/shared.yaml").write_text("name: shared\ndescription: x\ntier: auto\npath: .\n")
    with pytest.raises(
        SpecErrors, match=r"layout.server.log: found shared, which is not the DBMS's alone; expected an"
    ):
        load(shelf, "{log: shared}")

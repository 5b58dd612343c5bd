"""What defines a run is said once: every field of every spec is in a class, and what changes a run changes its hash."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from shipped_specs import shipped_dbms, shipped_study

from knobscope.identity import data_identity, run_identity
from knobscope.specs import Case, ClientHost, Dbms, StudySpecs, digest_of, select_fields
from knobscope.specs.completing.products import FIELDS, Product
from knobscope.specs.models.lifecycle import StatementCounts
from knobscope.specs.reading.base import SpecModel
from knobscope.workflow.pipeline import Pipeline


@pytest.fixture
def specs() -> StudySpecs:
    return shipped_study("quickstart")


def case_of(specs: StudySpecs) -> Case:
    return specs.cases[0]


def identify(specs: StudySpecs, phase: str = "screen") -> dict[str, Any]:
    case = case_of(specs)
    return run_identity(specs, case, phase, specs.study.knobs[case.dbms])


def change(specs: StudySpecs, kind: str, **fields: Any) -> StudySpecs:
    """Return the specs with fields of the study, or of the first DBMS, device or workload, changed."""
    if kind == "study":
        return replace(specs, study=specs.study.model_copy(update=fields))
    group = getattr(specs, kind)
    name = next(iter(group))
    return replace(specs, **{kind: {**group, name: group[name].model_copy(update=fields)}})


@pytest.mark.parametrize("model", FIELDS, ids=lambda model: model.__name__)
def test_every_field_of_a_spec_is_in_exactly_one_class_of_known_products(model: type[SpecModel]) -> None:
    named = [name for names in FIELDS[model].values() for name in names.split()]
    assert sorted(named) == sorted(model.model_fields)
    assert {product for products in FIELDS[model] for product in products.split()} <= set(get_args(Product))


def test_a_new_field_cannot_be_forgotten(sqlite: Dbms) -> None:
    class Newer(Dbms):
        novelty: int = 0

    FIELDS[Newer] = FIELDS[Dbms]  # type: ignore[index]
    try:
        with pytest.raises(TypeError, match="novelty"):
            select_fields(Newer(**{name: getattr(sqlite, name) for name in type(sqlite).model_fields}), "run")
    finally:
        del FIELDS[Newer]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("study", {"watch": ["syscalls"]}),
        ("study", {"monitor": "procfs"}),
        ("study", {"seed": 77}),
        ("workloads", {"measure_s": 77.0}),
        ("workloads", {"parameters": {"readproportion": 1.0, "updateproportion": 0.0}}),
        ("devices", {"dedicated": True}),
        ("dbms", {"booleans": ["no", "yes"]}),
        ("dbms", {"environment": {"X": "1"}}),
    ],
)
def test_what_changes_a_run_changes_its_identity(specs: StudySpecs, kind: str, fields: dict[str, Any]) -> None:
    assert identify(change(specs, kind, **fields)) != identify(specs)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("study", {"description": "x"}),
        ("study", {"rules": []}),
        ("study", {"trace": True}),
        ("workloads", {"description": "x"}),
        ("devices", {"description": "x"}),
        ("dbms", {"description": "x"}),
        ("dbms", {"since": "1"}),
    ],
)
def test_what_does_not_change_a_screening_run_keeps_it(specs: StudySpecs, kind: str, fields: dict[str, Any]) -> None:
    assert identify(change(specs, kind, **fields)) == identify(specs)


def test_a_client_host_belongs_to_a_run_and_how_one_gets_there_does_not(specs: StudySpecs) -> None:
    """Without one there is no word of it, so that runs of earlier versions keep their names."""

    def with_client(**fields: Any) -> dict[str, Any]:
        return identify(change(specs, "study", client=ClientHost(**fields)))

    assert "client" not in identify(specs)
    assert with_client(host="loadgen") == {**identify(specs), "client": {"host": "loadgen"}}
    assert with_client(host="other") != with_client(host="loadgen")
    assert with_client(host="loadgen", user="me", port=2222, identity="~/.ssh/x") == with_client(host="loadgen")


def test_recovery_belongs_to_a_run_and_is_not_mentioned_without(specs: StudySpecs) -> None:
    assert "measure" not in identify(specs)
    assert identify(change(specs, "study", measure=["recovery"])) == {**identify(specs), "measure": ["recovery"]}


def test_how_a_server_counts_statements_belongs_to_runs_that_ask_it_only(specs: StudySpecs) -> None:
    counted = StatementCounts(command=["psql", "-c", "select 1"], start=["-x"], source="https://example.org")
    asked = change(change(specs, "study", measure=["statements"]), "dbms", statements=counted)
    assert "statements" not in identify(change(specs, "dbms", statements=counted))
    assert identify(asked)["statements"] == {"start": ["-x"], "command": ["psql", "-c", "select 1"]}
    json.dumps(identify(asked))  # as the store does


def test_how_a_session_tells_its_thread_belongs_to_traced_runs_with_transactions(specs: StudySpecs) -> None:
    asking = change(change(specs, "study", trace=True), "dbms", session_thread="select 7")
    with_transactions = change(asking, "workloads", generator="tpcc")
    assert identify(with_transactions, "sweep")["session_thread"] == "select 7"
    assert "session_thread" not in identify(with_transactions, "screen")
    assert "session_thread" not in identify(change(with_transactions, "study", trace=False), "sweep")
    assert "session_thread" not in identify(asking, "sweep")


def test_a_program_that_is_only_asked_for_statements_defines_no_run() -> None:
    postgresql = shipped_dbms("postgresql")
    assert set(postgresql.running_programs) == set(postgresql.programs) - {"psql"}
    mariadb = shipped_dbms("mariadb")  # whose client also says when it is ready
    assert mariadb.running_programs == mariadb.programs


def test_classes_of_threads_belong_to_a_run_whose_waits_are_watched_only(specs: StudySpecs) -> None:
    watched, unwatched = (change(specs, "study", watch=probes) for probes in (["waits"], []))
    for study, is_other_run in ((watched, True), (unwatched, False)):
        changed = change(study, "dbms", threads={"session": "^main"})
        assert (identify(changed) != identify(study)) == is_other_run


def test_how_a_knob_is_written_belongs_to_runs_that_set_it(specs: StudySpecs) -> None:
    case = case_of(specs)
    knobs = specs.dbms[case.dbms].knobs
    varied = next(iter(specs.study.knobs[case.dbms]))
    other = next(name for name in knobs if name not in specs.study.knobs[case.dbms])
    for name, is_other_run in ((varied, True), (other, False)):
        changed = change(specs, "dbms", knobs={**knobs, name: knobs[name].model_copy(update={"alias": "another"})})
        assert (identify(changed) != identify(specs)) == is_other_run


def test_snakemake_sees_what_the_store_sees(specs: StudySpecs) -> None:
    """The bug this prevents: `watch` or `trace` added to a finished study, and nothing to be done."""

    def seen(specs: StudySpecs, phase: str) -> dict[str, Any]:
        return Pipeline(specs, "study.yaml").run_spec(str(case_of(specs)), phase)

    for phase in ("screen", "sweep"):
        assert seen(change(specs, "study", watch=["syscalls"]), phase) != seen(specs, phase)
    traced = change(specs, "study", trace=True)
    assert seen(traced, "sweep") != seen(specs, "sweep")
    assert seen(traced, "screen") == seen(specs, "screen")


def make_program(folder: Path, content: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "server"
    path.write_text(content)
    path.chmod(0o755)
    return path


def test_another_server_program_means_other_data_and_other_runs(
    specs: StudySpecs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade is seen by the content of the program, which is not run."""
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    program = {"server": {"find": ["db/server"], "package": "x"}}
    dbms = specs.dbms["sqlite"]
    dbms = Dbms.model_validate({**dbms.model_dump(exclude_none=True), "programs": program})
    upgraded = replace(specs, dbms={"sqlite": dbms})
    workload = specs.workloads[case_of(specs).workload]
    mark = tmp_path / "was-run"
    seen = []
    for version in ("1", "2", "1"):
        path = make_program(tmp_path / "db", f"#!/bin/sh\ntouch {mark}\necho {version}\n")
        os.utime(path, ns=(0, int(version)))
        seen.append((data_identity(dbms, workload, None, []), identify(upgraded)))
    assert seen[0] != seen[1]
    assert seen[0] == seen[2]
    assert not mark.exists()


def test_digest_of_a_directory_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_text("one")
    before = digest_of(tmp_path)
    assert digest_of(tmp_path) == before
    (tmp_path / "a.jar").rename(tmp_path / "a-2.jar")
    assert digest_of(tmp_path) != before


def test_the_client_libraries_belong_to_a_run(specs: StudySpecs) -> None:
    installed = identify(specs)["data"]["installed"]
    assert any(name.startswith("sqlite-jdbc-") for name in installed)
    assert all(installed.values())

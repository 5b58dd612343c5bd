"""Settings of a workload become knobs: what is planned, loaded and tuned with them, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from shipped_specs import SPECS, shipped_generator

from knobscope.identity import data_identity, run_identity
from knobscope.specs import Case, SpecErrors, StudySpecs, load_study, split_configuration
from knobscope.stages.plan import case_space
from knobscope.stages.plan.rounds import plan_sweep
from knobscope.stages.plan.search_space import search_space

STUDY = """name: varied
description: x
dbms: [server]
devices: [image]
workloads: {mix: %s}
knobs:
  server:
    flush:
factors:
  workload: {%s}
"""
CASE = Case("server", "image", "mix")


def load(shelf: Path, factors: str, change: str = "") -> StudySpecs:
    (shelf / "studies/varied.yaml").write_text(STUDY % (change, factors))
    return load_study(shelf / "studies/varied.yaml", shelf, runnable=False)


def problems(shelf: Path, factors: str) -> list[str]:
    with pytest.raises(SpecErrors) as raised:
        load(shelf, factors)
    return [f"{one.key}: found {one.found}; expected {one.expected}" for one in raised.value.problems]


def test_the_default_is_what_the_workload_says(shelf: Path) -> None:
    specs = load(shelf, "threads: [16, 1], read_share: [0.95], requestdistribution: [uniform]", "{threads: 4}")
    space = case_space(specs, CASE)
    assert space.levels["workload.threads"] == [1, 4, 16]
    assert space.default == {
        "flush": True,
        "workload.threads": 4,
        "workload.read_share": 0.5,
        "workload.requestdistribution": "zipfian",
    }
    assert len({row["config_id"] for row in plan_sweep(specs, CASE, ["workload.threads"])}) == 3


def test_only_what_shapes_the_data_is_loaded_anew(shelf: Path) -> None:
    specs = load(shelf, "records: [5], fieldlength: [10], threads: [3], read_share: [0.1]", "{records: 1000}")
    assert {name: knob.apply for name, knob in specs.dbms["server"].knobs.items() if name.startswith("workload.")} == {
        "workload.records": "load",
        "workload.fieldlength": "load",
        "workload.threads": "restart",
        "workload.read_share": "restart",
    }


def test_what_a_workload_does_not_state_is_as_the_generator_has_it(shelf: Path) -> None:
    scans = case_space(load(shelf, "maxscanlength: [10], fieldcount: [1]"), CASE)
    assert (scans.default["workload.maxscanlength"], scans.default["workload.fieldcount"]) == (1000, 10)
    mix = shelf / "workloads/mix.yaml"
    head = mix.read_text().partition("parameters:")[0]
    mix.write_text(head.replace("generator: ycsb", "generator: tpcc"))
    specs = load(
        shelf, "stock_level: [100], remote_item_share: [0, 0.5], think_times: [0.1], records: [1]", "{records: 2}"
    )
    space = case_space(specs, CASE)
    assert space.levels["workload.stock_level"] == [4, 100]
    assert space.levels["workload.remote_item_share"] == [0, 0.01, 0.5]
    assert space.levels["workload.think_times"] == [False, 0.1]
    knobs = specs.dbms["server"].knobs
    assert [name for name in space.levels if knobs[name].apply == "load"] == ["workload.records"]
    assert problems(shelf, "payment: [1001]") == [
        "factors.workload.payment.0: found 1001; expected a whole number of cards from 0 to 1000"
    ]


def test_only_parameters_that_the_load_names_shape_the_data_of_a_generator_with_a_spec() -> None:
    generator = shipped_generator("sysbench")
    assert generator.load_parameters == {"test", "tables", "secondary"}
    scan = shipped_generator("pgbench-scan")
    assert scan.load_parameters == {"scale", "stored_by"}  # one of them in a file that the load reads


def test_rows_are_spread_over_a_whole_number_of_tables(shelf: Path) -> None:
    for kind in ("generators/sysbench.yaml", "workloads/sysbench-write.yaml", "dbms/mariadb.yaml"):
        (shelf / kind).write_text((SPECS / kind).read_text())
    text = STUDY.replace("server", "mariadb").replace("mix: %s", "sysbench-write: %s")
    text = text.replace("flush:", "innodb_flush_log_at_trx_commit:")
    (shelf / "studies/varied.yaml").write_text(text % ("", "tables: [4, 0], range_size: [10]"))
    with pytest.raises(SpecErrors, match=r"tables\.1: found 0; expected a whole number from 1 on"):
        load_study(shelf / "studies/varied.yaml", shelf, runnable=False)
    (shelf / "studies/varied.yaml").write_text(text % ("", "tables: [4], range_size: [10]"))
    knobs = load_study(shelf / "studies/varied.yaml", shelf, runnable=False).dbms["mariadb"].knobs
    assert (knobs["workload.tables"].default, knobs["workload.tables"].apply) == (1, "load")
    assert (knobs["workload.range_size"].default, knobs["workload.range_size"].apply) == (100, "restart")


def test_a_table_of_ycsb_has_columns_for_so_many_fields(shelf: Path) -> None:
    (shelf / "dbms/sqlite.yaml").write_text((SPECS / "dbms/sqlite.yaml").read_text())
    text = STUDY.replace("server", "sqlite").replace("flush:", "synchronous:")
    (shelf / "studies/varied.yaml").write_text(text % ("", "fieldcount: [5, 11]"))
    with pytest.raises(SpecErrors, match=r"fieldcount\.1: found 11 fields; expected at most 10"):
        load_study(shelf / "studies/varied.yaml", shelf, runnable=False)


def test_the_order_of_storage_is_loaded_anew_where_the_spec_can_rewrite(shelf: Path) -> None:
    order = "load_order: [ordered, threads], rewrite: [true]"
    with pytest.raises(SpecErrors, match=r"rewrite\.0: found a rewrite of the table of server; expected `rewrite` in"):
        load(shelf, order)
    assert problems(shelf, "load_order: [order]") == [
        "factors.workload.load_order.0: found 'order'; expected ordered (did you mean that?)"
    ]
    text = (shelf / "dbms/server.yaml").read_text()
    (shelf / "dbms/server.yaml").write_text(f"{text}rewrite: [cluster usertable using usertable_pkey]\n")
    specs = load(shelf, order)
    assert case_space(specs, CASE).levels["workload.load_order"] == ["shuffled", "ordered", "threads"]
    assert {specs.dbms["server"].knobs[f"workload.{name}"].apply for name in ("load_order", "rewrite")} == {"load"}
    stored = data_identity(specs.dbms["server"], specs.workloads["mix"], None, ["workload.rewrite"])
    assert stored["rewrite"] == ["cluster usertable using usertable_pkey"]
    assert "rewrite" not in data_identity(specs.dbms["server"], specs.workloads["mix"], None, [])


def test_a_configuration_is_split_into_load_and_dbms(shelf: Path) -> None:
    workload = load(shelf, "threads: [3]").workloads["mix"]
    configuration = {"flush": False, "workload.threads": 3, "workload.read_share": 0.9, "workload.cold": True}
    changed, knobs, factors = split_configuration(workload, configuration)
    assert knobs == {"flush": False}
    assert set(factors) == {"workload.threads", "workload.read_share", "workload.cold"}
    assert (changed.threads, changed.cold) == (3, True)
    assert (changed.parameters["readproportion"], changed.parameters["updateproportion"]) == (0.9, 0.1)
    assert workload.parameters["readproportion"] == 0.5


def test_requirements_see_the_load_that_is_varied(shelf: Path) -> None:
    space = case_space(load(shelf, "threads: [3]", "{threads: 4}"), CASE)
    flush = space.dbms.knobs["flush"].model_copy(update={"requires": "threads >= 4"})
    space = replace(space, dbms=space.dbms.model_copy(update={"knobs": {**space.dbms.knobs, "flush": flush}}))
    assert space.allows({**space.default})
    assert not space.allows({**space.default, "workload.threads": 3})


def test_the_load_is_not_tuned(shelf: Path) -> None:
    space = search_space(load(shelf, "threads: [3]"), CASE, ["workload.threads", "flush"], None, with_durability=True)
    assert [one.name for one in space.parameters] == ["flush"]
    assert "workload.threads" in space.fixed


def test_a_value_more_measures_no_run_anew(shelf: Path) -> None:
    one, more = (
        run_identity(load(shelf, f"threads: {listed}"), CASE, "sweep", ["flush"]) for listed in ("[3]", "[3, 5]")
    )
    assert one == more


def test_what_cannot_be_varied_is_refused_with_its_place(shelf: Path) -> None:
    assert problems(shelf, "thread: [1]") == [
        "factors.workload.thread: found a setting that mix does not have; expected threads (did you mean that?)"
    ]
    assert problems(shelf, "threads: [0, 3, x]") == [
        "factors.workload.threads.0: found 0; expected greater than or equal to 1",
        "factors.workload.threads.2: found 'x'; expected an integer",
    ]
    assert problems(shelf, "read_share: [2]")[0].startswith("factors.workload.read_share.0: found 2; expected a number")
    assert problems(shelf, "requestdistribution: [uniform, uniform]") == [
        "factors.workload.requestdistribution.1: found 'uniform' a second time; expected each value once"
    ]
    assert problems(shelf, "cold: [false]") == [
        "factors.workload.cold: found false alone, which the workload has; expected at least one other value"
    ]


def test_workloads_of_one_study_begin_alike(shelf: Path) -> None:
    text = (shelf / "workloads/mix.yaml").read_text()
    (shelf / "workloads/other.yaml").write_text(text.replace("name: mix", "name: other"))
    (shelf / "studies/varied.yaml").write_text(
        STUDY.replace("{mix: %s}", "{mix: {threads: 2}, other: {threads: 3}}") % "threads: [4]"
    )
    with pytest.raises(SpecErrors, match="found 2 in mix, 3 in other; expected workloads that begin with the same"):
        load_study(shelf / "studies/varied.yaml", shelf, runnable=False)

"""A DBMS that needs nothing but its spec: the driver is fetched, and YCSB really runs on it."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from shipped_specs import ROOT, shipped_workload
from waiting import PATIENCE_S

from knobscope.errors import UserError
from knobscope.generators import YcsbRun, load_records
from knobscope.generators.drivers import fetch_driver
from knobscope.servers import compare_effective, open_instance
from knobscope.specs import Dbms, Jvm, SpecErrors, read_spec, validate_files
from knobscope.stages.prepare import load_session

H2 = ROOT / "specs/dbms/h2.yaml"
NOWHERE = "org.example.surely:not-there:1"


@pytest.fixture(scope="module")
def h2() -> Dbms:
    dbms = read_spec(H2, Dbms, None)[1]
    assert dbms.connection is not None
    assert dbms.connection.driver is not None
    fetch_driver(dbms.connection.driver)
    return dbms


@pytest.mark.real
def test_knobs_in_one_url_are_all_in_force_in_a_run_of_ycsb(h2: Dbms, tmp_path: Path) -> None:
    workload = shipped_workload("ycsb-a")
    workload = workload.model_copy(update={"records": 300, "threads": 2})
    configuration = {"write_delay": 0, "cache_size": 4096, "compress": True, "auto_compact_fill_rate": 50}
    with open_instance(h2, tmp_path) as instance:
        session = load_session(instance, workload, [], list(configuration), 2)
        assert load_records(session, h2.loading.tables) == 300
        session = session.with_connection(instance.knob_properties(configuration, "start"))
        with YcsbRun(session, warmup_s=0.2, measure_s=0.8, interval_ms=200) as run:
            effective = run.wait_connected(PATIENCE_S).effective
            run.wait_measured(PATIENCE_S)
            operations = run.result().operations
    assert compare_effective(h2, configuration, effective)[1] == {}
    assert effective["version"].startswith("2.")
    assert operations["READ"]["ok"] > 0
    assert operations["UPDATE"]["ok"] > 0
    assert operations["ALL"]["failed"] == 0
    assert (tmp_path / "ycsb.mv.db").stat().st_size > 300 * 1000


@pytest.mark.long
@pytest.mark.real
def test_the_java_machine_is_that_of_the_spec(h2: Dbms, tmp_path: Path) -> None:
    assert h2.connection is not None
    jvm = Jvm(heap_mib=1024, jit="tiered", options=["-XX:+UseParallelGC", "-XX:+UsePerfData"])
    dbms = h2.model_copy(update={"connection": h2.connection.model_copy(update={"jvm": jvm})})
    workload = shipped_workload("ycsb-c", records=10)
    with open_instance(dbms, tmp_path) as instance:
        session = load_session(instance, workload, [], [], 1)
        load_records(session, dbms.loading.tables)
        with YcsbRun(session, warmup_s=0, measure_s=30, interval_ms=200) as run:
            run.wait_measuring(PATIENCE_S)
            asked = ["jcmd", str(run.pid), "VM.flags"]
            flags = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert {"-XX:MaxHeapSize=1073741824", "-XX:+UseParallelGC"} <= set(flags)
    assert "-XX:TieredStopAtLevel=1" not in flags


def test_a_driver_that_is_missing_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    with pytest.raises(
        SpecErrors, match=r"h2.yaml:\d+: connection.driver: found no jars of .*fetched: knobscope drivers"
    ):
        validate_files([H2], ROOT, runnable=True)
    assert validate_files([H2], ROOT, runnable=False) == [H2]


@pytest.mark.real
def test_a_driver_that_does_not_exist_is_one_sentence_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refuses: Callable[..., str]
) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("no Maven")
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path / "fleet"))
    spec = tmp_path / "h2.yaml"
    spec.write_text(H2.read_text().replace("com.h2database:h2:2.3.232", NOWHERE))
    assert f"Maven cannot get the driver {NOWHERE}" in refuses("drivers", spec)
    assert not list((tmp_path / "fleet/drivers").iterdir())


def test_without_maven_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install maven"):
        fetch_driver(NOWHERE)


def test_a_driver_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    (tmp_path / "drivers/a+b+1").mkdir(parents=True)
    (tmp_path / "drivers/a+b+1/b.jar").touch()
    monkeypatch.setattr(subprocess, "run", None)
    assert fetch_driver("a:b:1") == tmp_path / "drivers/a+b+1"

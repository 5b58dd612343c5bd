"""Findings with known causes, put to the test on a real loop device."""

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest
from simulated_group import simulate_group_commit

from knobscope.devices import OpenDevice
from knobscope.durable_files import read_sealed
from knobscope.errors import UserError
from knobscope.specs import read_shipped_rule, shipped_rules
from knobscope.stages.detect import create_schema, find_runs_behind, write_findings
from knobscope.stages.imitate import command, imitate_findings
from knobscope.stages.imitate.evidence import Side, find_sides, read_pattern
from knobscope.tables import TABLES

RULES = {name: read_shipped_rule(name) for name in shipped_rules()}
CASE = {"dbms": "toy", "device": "loop", "workload": "w"}


def insert(connection: duckdb.DuckDBPyConnection, table: str, **row: Any) -> None:
    values = [row.get(column) for column in TABLES[table]]
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608


def add_run(
    connection: duckdb.DuckDBPyConnection,
    run_id: str,
    knobs: dict[str, str],
    *,
    sentinel: bool = False,
    write_bytes: int = 4096,
    depth: int = 1,
    flushes: int = 0,
    operations: int = 1000,
    **columns: Any,
) -> None:
    """Add a run that did a thousand random writes of one size at one depth."""
    config = json.dumps(knobs, sort_keys=True)
    row = {
        "run_id": run_id,
        **CASE,
        "operations": operations,
        "config_id": config,
        "is_sentinel": sentinel,
        "status": "ok",
        "monitor": "bpf",
    }
    insert(connection, "runs", **row | {"phase": "sweep", "block_id": "b0"} | columns)
    if not connection.execute("SELECT count(*) FROM knob_values WHERE config_id = ?", [config]).fetchone()[0]:  # type: ignore[index]
        for knob, value in knobs.items():
            insert(connection, "knob_values", config_id=config, dbms="toy", knob=knob, value=value)
    insert(connection, "io_profile", run_id=run_id, op="write", requests=1000, sequential_requests=0, fua=0)
    insert(connection, "io_profile", run_id=run_id, op="flush", requests=flushes)
    insert(connection, "io_sizes", run_id=run_id, op="write", bytes=write_bytes, requests=1000)
    insert(connection, "queue_depth", run_id=run_id, queue=-1, depth=0, time_ns=10**9)
    insert(connection, "queue_depth", run_id=run_id, queue=-1, depth=depth, time_ns=10**9)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a study of knobs `page` and `writers`; the default configuration has page=64 and writers=1."""
    path = tmp_path_factory.mktemp("filled") / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        create_schema(connection)
        connection.begin()  # else each of a hundred rows waits for the disk
        insert(connection, "device_profile", device="loop", preferred_write_bytes=65536)
        default = {"page": "64", "writers": "1"}
        add_run(connection, "s1", default, sentinel=True, write_bytes=65536, depth=8, operations=16000)
        add_run(connection, "s2", default, sentinel=True, write_bytes=65536, depth=8, operations=16000)
        add_run(connection, "small-1", default | {"page": "4"})
        add_run(connection, "small-2", default | {"page": "4"})
        add_run(connection, "broken", default | {"page": "4"}, status="failed_run")
        add_run(connection, "elsewhere", default | {"page": "4"}, device="other", block_id="b1")
        add_run(connection, "both", {"page": "4", "writers": "9"})
        connection.commit()
    return path


@pytest.fixture
def database(filled: Path, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """That of a study for one test to change."""
    with duckdb.connect(shutil.copy(filled, tmp_path / "study.duckdb")) as connection:
        yield connection


def finding(rule: str, knob: str | None, value: str | None, **other: Any) -> dict[str, Any]:
    return {
        "rule": rule,
        **CASE,
        "knob": knob,
        "value": value,
        "verdict": "mismatch",
        "sentence": "x",
        "effect": -0.8,
        **other,
    }


def confirm(
    database: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]], opened: OpenDevice | None = None
) -> list[dict[str, Any]]:
    return imitate_findings(rows, RULES, database, {"loop": nullcontext([opened])} if opened else {}, 1)


def side(*runs: str) -> Side:
    return Side("a side", list(runs), frozenset(runs))


def test_the_runs_behind_a_finding_change_its_knob_alone(database: duckdb.DuckDBPyConnection) -> None:
    behind = find_runs_behind(database, finding("io_size", "page", "4"))
    assert (behind.value, behind.default) == (["small-1", "small-2"], ["s1", "s2"])
    beside = find_runs_behind(database, finding("io_size", "writers", "9"))  # measured beside page = 4 only
    assert (beside.value, beside.default) == (["both"], ["small-1", "small-2"])
    assert find_runs_behind(database, finding("io_size", "writers", "2")).value == []
    default = find_runs_behind(database, finding("io_parallelism", None, None))
    assert (default.value, default.default) == ([], ["s1", "s2"])


def test_what_the_effects_leave_out_is_not_behind_a_finding(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("INSERT INTO set_aside_runs (run_id, guard) SELECT run_id, 'block' FROM runs")
    behind = find_runs_behind(database, finding("io_size", "page", "4"))
    assert (behind.value, behind.default) == ([], [])


def test_the_slower_side_is_to_blame(database: duckdb.DuckDBPyConnection) -> None:
    raised = finding("io_size", "page", "4", evidence='{"slower": "value"}')
    lowered = finding("io_size", "page", "4", evidence='{"slower": "baseline"}')
    assert [one.name for one in find_sides(database, raised)] == ["page = 4", "the default configuration"]
    assert [one.runs for one in find_sides(database, lowered)] == [["s1", "s2"], ["small-1", "small-2"]]
    assert find_sides(database, finding("io_parallelism", None, None))[1].runs == []


def test_pattern_is_what_the_runs_did_while_busy(database: duckdb.DuckDBPyConnection) -> None:
    pattern = read_pattern(database, side("small-1", "s1"))
    assert pattern is not None
    assert (pattern.reads, pattern.writes, pattern.flushes) == (0, 2000, 0)
    assert pattern.write_sizes == {4096: 1000, 65536: 1000}
    assert pattern.depth == pytest.approx(4.5)  # half the busy time at 1, half at 8; idle time does not count
    assert pattern.write_random == 1.0


def test_forced_writes_and_streams_are_part_of_the_pattern(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("UPDATE io_profile SET fua = 250, sequential_requests = 800 WHERE run_id = 'small-1'")
    database.execute("UPDATE io_profile SET requests = 50, fua = NULL WHERE run_id = 'small-1' AND op = 'flush'")
    pattern = read_pattern(database, side("small-1"))
    assert pattern is not None
    assert pattern.flushes == 300
    assert pattern.write_random == pytest.approx(0.2)


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize("modelled", [{"unit": "64KiB", "fill": "5ms", "flush": "0us"}], indirect=True)
def test_sizes_are_confirmed_on_a_device_with_a_unit(database: duckdb.DuckDBPyConnection, modelled: OpenDevice) -> None:
    database.execute("UPDATE queue_depth SET depth = 1 WHERE depth > 1")
    (size,) = confirm(database, [finding("io_size", "page", "4")], modelled)
    assert size["confirmed"] == "yes", size["confirmation"]
    assert "page = 4 on loop" in size["confirmation"]
    assert "Writes of 64 KiB that begin at multiples of 64 KiB" in size["confirmation"]
    assert "With as many bytes in writes of the sizes of the default configuration (" in size["confirmation"]
    assert " times as many writes) and nothing else changed: " in size["confirmation"]
    assert "95 % interval" in size["confirmation"]
    assert size["sentence"] == "x"


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize("modelled", [{"flush": "5ms"}], indirect=True)
def test_flushes_are_confirmed_where_they_take_long(database: duckdb.DuckDBPyConnection, modelled: OpenDevice) -> None:
    """Both settings write 4 KiB for each operation, and one of them flushes after each."""
    default = {"page": "64", "writers": "2"}
    add_run(database, "eager", default, sentinel=True, block_id="b7")
    add_run(database, "durable", default | {"writers": "3"}, flushes=1000, block_id="b7")
    (flush,) = confirm(database, [finding("flush", "writers", "3")], modelled)
    assert flush["confirmed"] == "yes", flush["confirmation"]
    assert "Operations per second with as few flushes as the default configuration and nothing" in flush["confirmation"]


def add_group_commits(database: duckdb.DuckDBPyConnection, cpu_s: float) -> float:
    """Add runs of eight clients that write and commit, and of a value that takes more CPU time; return its effect."""
    insert(database, "cases", **CASE, threads=8)
    default = {"page": "64", "writers": "2"}
    fewer, default_s = simulate_group_commit(8, 0.0005, 0.005)
    more, value_s = simulate_group_commit(8, cpu_s, 0.005)
    assert more / fewer > 1.5
    add_run(database, "quick", default, sentinel=True, block_id="b7", flushes=fewer)
    add_run(database, "busy", default | {"writers": "3"}, block_id="b7", flushes=more)
    for run, flushes in (("quick", fewer), ("busy", more)):  # each flush is for what was written since the last one
        database.execute("UPDATE io_profile SET requests = ? WHERE run_id = ? AND op = 'write'", [flushes, run])
        database.execute("UPDATE io_sizes SET requests = ? WHERE run_id = ?", [flushes, run])
    database.execute("UPDATE queue_depth SET time_ns = 100 WHERE run_id IN ('quick', 'busy') AND depth = 0")
    return default_s / value_s - 1


@pytest.mark.real
@pytest.mark.parametrize("modelled", [{"flush": "5ms"}], indirect=True)
def test_cpu_time_under_group_commit_is_not_confirmed_as_flushes(
    database: duckdb.DuckDBPyConnection, modelled: OpenDevice
) -> None:
    """The replica, with the flushes that it has more, is slower, whatever the reason for them is."""
    effect = add_group_commits(database, cpu_s=0.005)
    (flush,) = confirm(database, [finding("flush", "writers", "3", effect=effect)], modelled)
    assert flush["confirmed"] == "not_tested", flush["confirmation"]
    assert "fio cannot refute this: commits of the 8 clients can share flushes" in flush["confirmation"]


@pytest.mark.long
@pytest.mark.real
def test_parallelism_is_confirmed_where_the_device_can_do_more(
    database: duckdb.DuckDBPyConnection, loop: OpenDevice
) -> None:
    database.execute("UPDATE queue_depth SET depth = 1 WHERE depth > 1")
    bound = json.dumps({"most_gain": 1.2})
    (narrow,) = confirm(database, [finding("io_parallelism", None, None, evidence=bound, penalty=1.2)], loop)
    assert narrow["confirmed"] == "yes", narrow["confirmation"]
    assert "the default configuration on loop" in narrow["confirmation"]
    assert json.loads(narrow["evidence"]) == {"profile_gain": 1.2, "most_gain": narrow["penalty"]}
    assert narrow["penalty"] > 1.2
    assert list(loop.directory.iterdir()) == []


def test_what_was_tested_on_what_if_devices_keeps_its_answer(database: duckdb.DuckDBPyConnection) -> None:
    row = finding("io_size", "page", "4", confirmed="yes", confirmation="The cause is known.")
    assert confirm(database, [row]) == [row]


def test_what_was_only_measured_again_is_tested_still(database: duckdb.DuckDBPyConnection) -> None:
    row = finding("tier", "page", "4", confirmed=None, confirmation="It showed again.")
    (found,) = confirm(database, [row])
    assert found["confirmed"] == "not_tested"
    assert found["confirmation"].startswith("It showed again. Not tested with fio: tier blames no single factor")


def test_what_cannot_be_tested_says_why_and_waits_for_no_device(database: duckdb.DuckDBPyConnection) -> None:
    @contextmanager
    def somebody_else_has_it() -> Iterator[list[OpenDevice]]:
        pytest.fail("the device was opened, with nothing to test on it")
        yield []

    database.execute("UPDATE runs SET monitor = 'procfs' WHERE run_id LIKE 's_'")
    database.execute("UPDATE runs SET lost_events = 3 WHERE run_id LIKE 'small%'")
    rows = [
        finding("io_size", "page", "16"),
        finding("io_parallelism", None, None),
        finding("io_size", "page", "4"),
        finding("tier", "page", "4"),
        finding("io_size", "page", "4", verdict="insufficient"),
    ]
    found = imitate_findings(rows, RULES, database, {"loop": somebody_else_has_it()}, 1)
    assert {row["confirmed"] for row in found} == {"not_tested"}
    absent, unwatched, lossy, other, undecided = (row["confirmation"] for row in found)
    assert absent == "not tested: no successful run of the sweep has page = 16, compared with the default in its block"
    assert "BPF monitored none of its runs" in unwatched
    assert "BPF monitored none of its runs" in lossy
    assert "tier blames no single factor" in other
    assert undecided is None


def test_device_that_is_not_at_hand_is_not_tested(database: duckdb.DuckDBPyConnection) -> None:
    (found,) = confirm(database, [finding("io_size", "page", "4")])
    assert found["confirmation"] == "not tested: device loop is not available"


@pytest.mark.real
def test_device_without_space_is_not_tested(database: duckdb.DuckDBPyConnection, loop: OpenDevice) -> None:
    full = loop.directory / "full"
    full.write_bytes(b"x" * (loop.free_bytes - (8 << 20)))
    (found,) = confirm(database, [finding("io_size", "page", "4")], loop)
    full.unlink()
    assert found["confirmed"] == "not_tested"
    assert "a test file needs 32 MiB" in found["confirmation"]


def test_missing_fio_is_an_error_of_the_user(
    database: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install fio"):
        confirm(database, [finding("io_size", "page", "4")])


def test_no_findings_are_no_error(database: duckdb.DuckDBPyConnection) -> None:
    assert confirm(database, []) == []


@pytest.mark.real
@pytest.mark.long
def test_command_does_not_confirm_a_cause_that_is_not_there(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    insert(database, "device_profile", device="here", preferred_write_bytes=4096)  # 64 KiB are no reason to be slow
    # So large an effect that no noise of a busy disk hides that flushes do not make it.
    findings = [
        finding("flush", "page", "64", device="here", effect=-0.99),
        finding("tier", "page", "4", device="here"),
    ]
    default = {"page": "8", "writers": "1"}
    add_run(database, "here-s", default, sentinel=True, device="here", block_id="b2")
    add_run(database, "here-v", default | {"page": "64"}, write_bytes=65536, device="here", block_id="b2")  # as slow
    database.close()
    write_findings(tmp_path / "study.duckdb", findings)
    before = (tmp_path / "study.duckdb").read_bytes()
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    files = ["--database", str(tmp_path / "study.duckdb"), "--out", str(tmp_path / "imitated.duckdb")]
    args = parser.parse_args(["imitate", "--study", str(study), "--root", str(tmp_path), "--seconds", "1", *files])
    assert args.run(args) == 0
    assert (tmp_path / "study.duckdb").read_bytes() == before
    with duckdb.connect(str(tmp_path / "imitated.duckdb"), read_only=True) as connection:
        found = connection.execute("FROM findings").df()
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (9,)
    assert list(found["confirmed"]) == ["no", "not_tested"]
    assert "With as few flushes as the default configuration" in found["confirmation"].iloc[0]
    assert found["sentence"].iloc[0].startswith("Refuted")
    assert "of 1 mismatch with a cause to test, 0 confirmed, 1 not, 0 not tested" in capsys.readouterr().err
    assert not (tmp_path / ".knobscope").exists()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--device", "elsewhere", "--device elsewhere: expected one of "),
        ("--seconds", "nan", "--seconds is nan; expected more than 0"),
        ("--seconds", "0", "--seconds is 0; expected more than 0"),
    ],
)
def test_an_option_that_asks_for_nothing_is_refused(
    option: str,
    value: str,
    words: str,
    database: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    study: Path,
    refuses: Callable[..., str],
) -> None:
    database.close()
    files = ["--database", str(tmp_path / "study.duckdb"), "--out", str(tmp_path / "imitated")]
    assert words in refuses("imitate", "--study", study, "--root", tmp_path, *files, option, value)
    assert not (tmp_path / "imitated").exists()


@pytest.mark.long
@pytest.mark.real
def test_what_each_device_says_is_joined(tmp_path: Path, database: duckdb.DuckDBPyConnection, study: Path) -> None:
    other = study.parents[1] / "devices/loop.yaml"
    other.write_text("name: loop\ndescription: another directory\ntier: auto\npath: specs\n")
    study.write_text(study.read_text().replace("devices: [here]", "devices: [here, loop]"))
    insert(database, "device_profile", device="here", preferred_write_bytes=4096)
    default = {"page": "8", "writers": "1"}
    add_run(database, "here-s", default, sentinel=True, device="here", block_id="b2")
    add_run(database, "here-v", default | {"page": "64"}, write_bytes=65536, device="here", block_id="b2")
    database.close()
    source, joined = tmp_path / "study.duckdb", tmp_path / "joined.duckdb"
    write_findings(source, [finding("tier", "page", "4"), finding("flush", "page", "64", device="here", effect=-0.99)])
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())

    def call(*more: str) -> None:
        args = ["imitate", "--study", str(study), "--root", str(tmp_path), "--seconds", "1", "--database", str(source)]
        parsed = parser.parse_args([*args, *more])
        assert parsed.run(parsed) == 0

    answers = [tmp_path / f"{device}.json" for device in ("loop", "here")]
    for answer in answers:
        call("--device", answer.stem, "--out", str(answer))
    call("--imitated", *map(str, answers), "--out", str(joined))
    assert [sorted(read_sealed(answer)) for answer in answers] == [["0"], ["1"]]
    with duckdb.connect(str(joined), read_only=True) as connection:
        found = connection.execute("FROM findings").df()
    assert list(found["device"]) == ["loop", "here"]
    assert list(found["confirmed"]) == ["not_tested", "no"]
    assert "blames no single factor" in found["confirmation"].iloc[0]
    assert found["sentence"].iloc[1].startswith("Refuted")

"""`knobscope remeasure`: each device where it is, then one database with all answers."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pytest

from knobscope.cli import main
from knobscope.durable_files import read_sealed, write_sealed
from knobscope.stages.detect import create_schema

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "specs/studies/sqlite-causes.yaml"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A study's database without runs, with three findings."""
    path = tmp_path / "detected.duckdb"
    with duckdb.connect(str(path)) as connection:
        create_schema(connection)
        connection.executemany(
            "INSERT INTO findings BY NAME SELECT 'flush' AS rule, 'sqlite' AS dbms, 'nvme-consumer' AS device, "
            "'ycsb-a' AS workload, 'synchronous' AS knob, ? AS value, ? AS verdict, 'It flushes.' AS sentence, "
            "'not_tested' AS confirmed, 'flush' AS cause, '{}' AS evidence",
            [["off", "mismatch"], ["normal", "mismatch"], ["extra", "insufficient"]],
        )
        connection.executemany(
            "INSERT INTO fastest BY NAME SELECT 'sqlite' AS dbms, ? AS device, 'ycsb-a' AS workload, ? AS risk, "
            '? AS changes, \'{"synchronous": "full"}\' AS configuration, 3 AS runs',
            [["nvme-consumer", "none", "{}"], ["nvme-consumer", "any", '{"synchronous": "off"}']],
        )
    return path


def test_answers_of_all_devices_are_joined(database: Path, tmp_path: Path) -> None:
    withdrawn = {"confirmed": "no", "confirmation": "It ran again.", "sentence": "Refuted: it is gone."}
    again = {"confirmed": None, "confirmation": "It shows again."}
    settled = {"verdict": "mismatch", "penalty": 2.0, "confirmed": "yes", "confirmation": "It goes without flushes."}
    run = {"dbms": "sqlite", "device": "a", "workload": "ycsb-a", "property": "none", "run_id": "r", "pair": 0}
    nothing: dict[str, list[object]] = {"what_if_runs": [], "what_ifs": [], "sensitivities": [], "fastest": []}
    case = {"dbms": "sqlite", "device": "nvme-consumer", "workload": "ycsb-a"}
    measured = {**case, "risk": "any", "pairs": 4, "again": 2.0, "again_low": 1.9, "again_high": 2.1}
    write_sealed(
        tmp_path / "a.json", {"findings": {0: withdrawn}, **nothing, "what_if_runs": [run], "fastest": [measured]}
    )
    sensitivity = {"dbms": "sqlite", "device": "a", "workload": "ycsb-a", "op": "flush", "sensitivity": -0.6}
    shares = {"what_ifs": [{**run, "pairs": 4}], "sensitivities": [sensitivity]}
    write_sealed(tmp_path / "b.json", {"findings": {1: again, 2: settled}, **nothing, **shares})
    out = tmp_path / "remeasured.duckdb"
    answers = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    before = database.read_bytes()
    main(["remeasure", "--study", str(STUDY), "--database", str(database), "--remeasured", *answers, "--out", str(out)])
    assert database.read_bytes() == before
    with duckdb.connect(str(out), read_only=True) as connection:
        rows = connection.execute(
            "SELECT value, verdict, penalty, confirmed, confirmation, sentence FROM findings"
        ).fetchall()
        assert connection.execute("SELECT run_id, pair FROM what_if_runs").fetchall() == [("r", 0)]
        assert connection.execute("SELECT pairs FROM what_ifs").fetchall() == [(4,)]
        fastest = connection.execute(
            "SELECT risk, changes, runs, pairs, again_low FROM fastest ORDER BY risk"
        ).fetchall()
        assert fastest == [("any", '{"synchronous": "off"}', 3, 4, 1.9), ("none", "{}", 3, None, None)]
        assert connection.execute("SELECT op, sensitivity FROM sensitivities").fetchall() == [("flush", -0.6)]
    assert rows == [
        ("off", "mismatch", None, "no", "It ran again.", "Refuted: it is gone."),
        ("normal", "mismatch", None, None, "It shows again.", "It flushes."),
        ("extra", "mismatch", 2.0, "yes", "It goes without flushes.", "It flushes."),
    ]


def test_a_tuners_winner_that_was_faster_again_is_the_fastest(database: Path, tmp_path: Path) -> None:
    """What the study picked was slower in new pairs, or faster by less than the winner surely is."""
    case = {"dbms": "sqlite", "device": "nvme-consumer", "workload": "ycsb-a"}
    wal = {"journal_mode": "wal", "synchronous": "full"}
    with duckdb.connect(str(database)) as connection:
        for name, low in (("good", 0.4), ("best", 0.5), ("unsure", -0.1)):
            tuned = {**case, "space": "all", "config_id": name, "estimate": low + 0.1, "low": low, "high": low + 0.2}
            tuned |= {"runs": 3, "cuts": 5, "cuts_lost": 0}
            plan = {"phase": "tune", "config_id": name, "configuration": json.dumps(wal), "block_id": "b"}
            for table, row in (("tuned", tuned), ("plan", plan), ("plan", plan)):
                values = ", ".join(f"? AS {column}" for column in row)
                connection.execute(f"INSERT INTO {table} BY NAME SELECT {values}", [*row.values()])
    nothing: dict[str, object] = {"findings": {}, "what_if_runs": [], "what_ifs": [], "sensitivities": []}

    def join(again: Mapping[str, object]) -> tuple[object, ...]:
        write_sealed(tmp_path / "a.json", {**nothing, "fastest": [{**case, "risk": "none", "pairs": 4, **again}]})
        out, answer = tmp_path / "out.duckdb", str(tmp_path / "a.json")
        arguments = ["--study", str(STUDY), "--database", str(database), "--remeasured", answer, "--out", str(out)]
        main(["remeasure", *arguments])
        with duckdb.connect(str(out), read_only=True) as connection:
            columns = "changes, tuner, pairs, again_low, cuts"
            return connection.execute(f"SELECT {columns} FROM fastest WHERE risk = 'none'").fetchall()[0]  # noqa: S608

    winner = ('{"journal_mode": "wal"}', "all", 3, 0.5, 5)
    assert join({"again": -0.1, "again_low": -0.2, "again_high": -0.05}) == winner
    assert join({"again": 0.2, "again_low": 0.1, "again_high": 0.3}) == winner
    assert join({"again": 0.5, "again_low": 0.3, "again_high": 0.7})[:3] == ("{}", None, 4)


def test_a_damaged_answer_leaves_nothing_behind(database: Path, tmp_path: Path, refuses: Callable[..., str]) -> None:
    (tmp_path / "a.json").write_text('{"findings": {}}')
    out = tmp_path / "remeasured.duckdb"
    join = ["--remeasured", str(tmp_path / "a.json"), "--out", str(out)]
    assert "a.json is damaged" in refuses("remeasure", "--study", STUDY, "--database", database, *join)
    assert not out.exists()


def test_a_device_without_questions_measures_nothing(database: Path, tmp_path: Path) -> None:
    """No sweep is in this database, so nobody knows which configurations the findings compare."""
    shutil.copy(database, tmp_path / "copy.duckdb")
    with duckdb.connect(str(tmp_path / "copy.duckdb")) as connection:
        connection.execute("DELETE FROM fastest")
    out = tmp_path / "nvme-consumer.json"
    arguments = ["--database", str(tmp_path / "copy.duckdb"), "--device", "nvme-consumer", "--out", str(out)]
    profile = ["--devices", str(tmp_path / "profiles/nvme-consumer.json")]
    assert main(["remeasure", "--study", str(STUDY), "--store", str(tmp_path / "store"), *profile, *arguments]) == 0
    tables = ("what_if_runs", "what_ifs", "sensitivities", "fastest", "effects")
    nothing: dict[str, list[object]] = {name: [] for name in tables}
    assert read_sealed(out) == {"findings": {}, **nothing}
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("device", "words"),
    [("nvme-consumer", "needs --store, and the profile"), ("floppy", "--device floppy: expected one of nvme-consumer")],
)
def test_what_is_missing_to_measure_is_reported(
    database: Path, tmp_path: Path, refuses: Callable[..., str], device: str, words: str
) -> None:
    arguments = ["--database", str(database), "--device", device, "--out", str(tmp_path / "out.json")]
    assert words in refuses("remeasure", "--study", STUDY, *arguments)
    assert not (tmp_path / "out.json").exists()

"""Storages and reports of other tools, as the tools themselves wrote them, become a table with a row per run."""

import csv
import hashlib
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
import pytest

from knobscope.cli import main

#: What pgbench 15.18 and sysbench 1.0.20 printed.
REPORTS = Path(__file__).with_name("reports")

Rows = list[dict[str, str]]
Read = Callable[..., Rows]


@pytest.fixture
def read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Read:
    """Return a function that imports files of a tool and returns the rows of the table."""

    def run(tool: str, *arguments: str | Path) -> Rows:
        out = tmp_path / f"{tool}.csv"
        assert main(["import", "--from", tool, *map(str, arguments), "--out", str(out)]) == 0, capsys.readouterr().err
        with out.open(newline="") as file:
            return list(csv.DictReader(file))

    return run


def refusal(capsys: pytest.CaptureFixture[str], tool: str, *arguments: str | Path) -> str:
    """Return why the files of a tool are refused; nothing is written then."""
    assert main(["import", "--from", tool, *map(str, arguments), "--out", "/dev/null/none.csv"]) == 2
    return capsys.readouterr().err


def test_pgbench_settings_are_in_paths_and_in_reports(read: Read) -> None:
    rows = read("pgbench", REPORTS / "pgbench")
    columns = ("synchronous_commit", "work_mem", "clients", "script", "tps", "latency_mean_ms")
    assert sorted(tuple(row[name] for name in columns) for row in rows) == [
        ("default", "default", "", "", "failed", ""),
        ("off", "8MB", "2", "<builtin: TPC-B (sort of)>", "292.422131", "6.839"),
        ("on", "default", "2", "<builtin: TPC-B (sort of)>", "166.301934", "12.026"),
    ]


def test_several_reports_in_a_file_are_several_runs(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read("pgbench", REPORTS / "pgbench-clients.txt")
    assert [(row["run"][-2:], row["clients"], row["tps"]) for row in rows] == [
        (":1", "1", "894.861388"),
        (":2", "2", "2310.580193"),
        (":3", "4", "2739.543804"),
    ]
    assert capsys.readouterr().out.endswith("--response tps --factors clients\n")


def test_sysbench_rates_are_events_over_time(read: Read) -> None:
    rows = {row["run"].rpartition("/")[2]: row for row in read("sysbench", REPORTS / "sysbench")}
    assert {name: row["threads"] for name, row in rows.items() if name.startswith("threads")} == {
        f"threads.txt:{number}": threads for number, threads in enumerate("112244", 1)
    }
    assert float(rows["threads.txt:1"]["events_per_s"]) == pytest.approx(31.62, abs=0.02)  # as it says itself
    assert float(rows["cpu.txt"]["events_per_s"]) == pytest.approx(183, abs=1)
    assert rows["threads.txt:1"]["latency_p95_ms"] == "176.73"
    assert rows["failed.txt"]["events_per_s"] == "failed"


@pytest.mark.slow
def test_the_printed_command_ranks_the_table(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    read("sysbench", REPORTS / "sysbench/threads.txt", REPORTS / "sysbench/failed.txt")
    (command,) = capsys.readouterr().out.splitlines()
    assert main([*command.split()[1:], "--jobs", "1"]) == 0
    assert "threads" in capsys.readouterr().out


def test_another_file_is_no_report(capsys: pytest.CaptureFixture[str]) -> None:
    sysbench = REPORTS / "sysbench/cpu.txt"
    assert "cpu.txt: found no report of pgbench; expected what it prints" in refusal(capsys, "pgbench", sysbench)
    assert "does not exist" in refusal(capsys, "sysbench", "nowhere")
    assert "reports of sysbench have no studies" in refusal(capsys, "sysbench", sysbench, "--study", "mine")


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "run.log").symlink_to(REPORTS / "pgbench-clients.txt")
    assert "found no finished run" in refusal(capsys, "pgbench", folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A storage of Optuna with a study of twelve trials: one failed, one pruned."""
    path = tmp_path_factory.mktemp("optuna") / "original.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def measure(trial: optuna.Trial) -> float:
        cache = trial.suggest_int("cache", 1, 9)
        special = trial.suggest_categorical("delay.special", ["range", "0"])
        delay = trial.suggest_int("delay", 10, 20) if special == "range" else 0
        if trial.number == 4:
            raise ValueError("the server crashed")
        if trial.number == 6:
            raise optuna.TrialPruned
        return 100 * cache + delay

    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="mine", sampler=sampler, direction="maximize")
    study.optimize(measure, n_trials=12, catch=(ValueError,))
    return path


@pytest.fixture
def storage(original: Path, tmp_path: Path) -> Path:
    """A copy of the storage, under a name that a URL would misread."""
    return Path(shutil.copy(original, tmp_path / "stranger's storage?#.db"))


def test_trials_of_optuna_are_read_by_value_and_nothing_is_written(
    read: Read, storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = hashlib.sha256(storage.read_bytes()).hexdigest()
    storage.chmod(0o444)
    rows = read("optuna", storage)
    assert [row["run"] for row in rows] == [str(number) for number in range(12) if number != 6]
    assert [row["value"] for row in rows if row["run"] == "4"] == ["failed"]
    finished = [row for row in rows if row["run"] != "4"]
    assert all(float(row["value"]) == 100 * int(row["cache"]) + int(row["delay"]) for row in finished)
    assert {row["delay"] == "0" for row in finished} == {True, False}
    assert hashlib.sha256(storage.read_bytes()).hexdigest() == before
    assert sorted(path.name for path in storage.parent.iterdir()) == ["optuna.csv", storage.name]
    said = capsys.readouterr()
    assert "value: higher is better" in said.err and "1 pruned" in said.err
    assert said.out.endswith("--response value --factors cache,delay\n")


def test_the_study_is_named_where_a_storage_has_several(
    read: Read, storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = storage.rename(storage.with_name("plain.db"))
    both = optuna.create_study(storage=f"sqlite:///{plain}", study_name="both", directions=["minimize", "maximize"])
    both.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 7), n_trials=1)
    assert "found 2 studies (both, mine)" in refusal(capsys, "optuna", plain)
    assert "expected one of both, mine" in refusal(capsys, "optuna", plain, "--study", "other")
    (row,) = read("optuna", plain, "--study", "both")
    assert (row["value_0"], row["value_1"]) == (row["x"], "7.0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("CREATE VIEW secrets AS SELECT 1", "found the view 'secrets'"),
        ("CREATE TRIGGER t AFTER INSERT ON trials BEGIN SELECT 1; END", "found the trigger 't'"),
        ("DROP TABLE trials", "found no table 'trials'"),
        ("UPDATE alembic_version SET version_num = 'v0.0.0'", "expected an SQLite storage of Optuna"),
        ("ALTER TABLE trials DROP COLUMN number", "expected an SQLite storage of Optuna"),
    ],
)
def test_a_storage_that_is_not_as_optuna_made_it_is_refused(
    storage: Path, change: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(storage)) as connection, connection:
        connection.execute(change)
    assert words in refusal(capsys, "optuna", storage)


def test_a_damaged_storage_ends_with_a_sentence(storage: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, dice = storage.read_bytes(), random.Random(1)
    for _ in range(8):
        begin = dice.randrange(len(content))
        storage.write_bytes(content[:begin] + dice.randbytes(300) + content[begin + 300 :])
        code = main(["import", "--from", "optuna", str(storage), "--out", str(storage.with_name("table.csv"))])
        storage.with_name("table.csv").unlink(missing_ok=True)
        assert code in (0, 2)
        assert "Traceback" not in capsys.readouterr().err
    storage.with_name(f"{storage.name}-wal").write_bytes(b"x")
    assert "end the program that writes it first" in refusal(capsys, "optuna", storage)


@pytest.mark.slow
def test_trials_of_mlos_bench_are_read_by_value(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mlos.db"
    expected = write_mlos(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    rows = read("mlos_bench", path)
    assert [(row["cache"], row["mode"], row["tps"]) for row in rows] == expected
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    said = capsys.readouterr()
    assert "tps: higher is better" in said.err and "1 unfinished" in said.err
    assert said.out.endswith("--response tps --factors cache,mode\n")
    shutil.copy(REPORTS / "sysbench/cpu.txt", path)
    assert "file is not a database" in refusal(capsys, "mlos_bench", path)


def write_mlos(path: Path) -> list[tuple[Any, ...]]:
    """Write an experiment with mlos_bench itself, in the Git repository that it wants; returns cache, mode and tps."""
    from mlos_bench.environments.status import Status
    from mlos_bench.storage.sql.storage import SqlStorage
    from mlos_bench.tunables.tunable_groups import TunableGroups

    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    Path("environment.jsonc").write_text("{}")
    for command in (["init", "-q"], ["remote", "add", "origin", "https://example.org/x"], ["add", "environment.jsonc"]):
        subprocess.run(["git", *command], check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "x"], check=True)
    cache = {"type": "int", "range": [1, 99], "default": 1}
    mode = {"type": "categorical", "values": ["slow", "fast"], "default": "slow"}
    tunables = TunableGroups({"db": {"cost": 1, "params": {"cache": cache, "mode": mode}}})
    storage = SqlStorage({"drivername": "sqlite", "database": str(path)})
    experiment = storage.experiment(
        experiment_id="mine", trial_id=1, root_env_config="environment.jsonc", description="", tunables=tunables,
        opt_targets={"tps": "max"},
    )  # fmt: skip
    expected: list[tuple[Any, ...]] = []
    with experiment:
        for number in range(6):
            values = {"cache": 7 + number, "mode": ("slow", "fast")[number % 2]}
            trial, now = experiment.new_trial(tunables.copy().assign(values)), datetime.now(UTC)
            if number == 3:
                trial.update(Status.FAILED, now)
            elif number < 5:
                trial.update(Status.SUCCEEDED, now, {"tps": 100.5 * number})
            tps = "failed" if number == 3 else str(100.5 * number)
            expected += [(str(values["cache"]), values["mode"], tps)] if number < 5 else []
    return expected

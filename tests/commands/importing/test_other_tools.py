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

import pytest

from knobscope.cli import main

#: What pgbench 15.18 and sysbench 1.0.20 printed; files of BenchBase and HammerDB are written in their form, which is
#: that of ResultWriter.java in cmu-db/benchbase (commit d2ff90f), and of modules/jobs-1.0.tm and src/generic/genvu.tcl
#: in TPC-Council/HammerDB (commit 5725747).
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


def test_options_of_a_table_are_refused_where_files_of_a_tool_are(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--set", "dbms=postgresql", "--failed-value", "-1", "--response", "tps")
    said = refusal(capsys, "pgbench", REPORTS / "pgbench", *options)
    assert "found --response, --set and --failed-value with --from pgbench; expected them where its table" in said


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "run.log").symlink_to(REPORTS / "pgbench-clients.txt")
    assert "found no finished run" in refusal(capsys, "pgbench", folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A storage of Optuna with a study of twelve trials: one failed, one pruned."""
    import optuna

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
    import optuna

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


def test_benchbase_summaries_and_the_parameters_next_to_them(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {Path(row["run"]).name[:24]: row for row in read("benchbase", REPORTS / "benchbase")}
    columns = ("synchronous_commit", "shared_buffers", "terminals", "throughput", "goodput", "latency_p95_us")
    assert {name[-8:]: tuple(row[column] for column in columns) for name, row in rows.items()} == {
        "10-00-00": ("on", "128MB", "4", "307.01603", "305.5826", "41522.0"),
        "10-02-00": ("off", "1GB", "4", "488.4983", "486.1817", "28033.0"),
        "10-04-00": ("on", "128MB", "4", "failed", "", ""),
        "10-06-00": ("local", "", "", "305.29999999999995", "", ""),  # the series alone, whose folder names the setting
    }
    assert capsys.readouterr().out.endswith("--response throughput --factors synchronous_commit,shared_buffers\n")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.summary.json", "{", "expected JSON that BenchBase wrote"),
        ("a.summary.json", "[1]", "found no keys with values"),
        ("a.summary.json", "[" * 100_000, "expected JSON that BenchBase wrote"),
        ("a.summary.json", '{"a": 1}', "found no 'Throughput (requests/second)'"),
        ("a.results.csv", "a,b\n1,2\n", "found no column 'Throughput (requests/second)'"),
        ("a.results.csv", "Throughput (requests/second)\nmany\n", "a.results.csv:2: could not convert"),
        ("a.txt", "", "found no result of BenchBase"),
    ],
)
def test_other_files_are_no_results_of_benchbase(
    name: str, text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert sentence in refusal(capsys, "benchbase", tmp_path / name)


@pytest.mark.parametrize("rates", ["nan", "10\ninf"])
def test_a_series_without_a_mean_is_a_failed_run(rates: str, read: Read, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "a.results.csv").write_text(f"Throughput (requests/second)\n{rates}\n")
    (row,) = read("benchbase", folder)
    assert row["throughput"] == "failed"


def test_runs_without_a_setting_that_differs_have_nothing_to_rank(
    read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read("sysbench", REPORTS / "sysbench/failed.txt")[0]["events_per_s"] == "failed"
    said = capsys.readouterr()
    assert said.out == ""
    assert "so there is nothing to rank" in said.err


def test_hammerdb_logs_have_a_run_for_each_rampup_that_says_its_settings(read: Read) -> None:
    rows = read("hammerdb", REPORTS / "hammerdb")
    assert sorted(
        tuple(row[name] for name in ("synchronous_commit", "virtual_users", "nopm", "tpm")) for row in rows
    ) == [
        ("off", "2", "26207.0", "60511.0"),
        ("off", "4", "41903.0", "96544.0"),
        ("on", "2", "13102.0", "30240.0"),
    ]


#: Tables of HammerDB's job database that are read, as modules/jobs-1.0.tm makes them.
JOB_TABLES = """
CREATE TABLE JOBMAIN(jobid TEXT primary key, db TEXT, bm TEXT, jobdict TEXT, timestamp DATETIME NOT NULL DEFAULT
    (datetime(CURRENT_TIMESTAMP, 'localtime')), profile_id INTEGER NOT NULL DEFAULT 0);
CREATE TABLE JOBTIMING(jobid TEXT, vu INTEGER, procname TEXT, calls INTEGER, min_ms REAL, avg_ms REAL, max_ms REAL,
    total_ms REAL, p99_ms REAL, p95_ms REAL, p75_ms REAL, p50_ms REAL, p25_ms REAL, sd REAL, ratio_pct REAL,
    summary INTEGER, elapsed_ms REAL, FOREIGN KEY(jobid) REFERENCES JOBMAIN(jobid));
CREATE TABLE JOBOUTPUT(jobid TEXT, vu INTEGER, output TEXT);
CREATE INDEX JOBMAIN_IDX ON JOBMAIN(jobid);
"""
SETTINGS = (
    "connection {{pg_host localhost pg_port 5432}} tpcc {{schema {{pg_count_ware {ware} pg_superuserpass s3cret "
    'pg_tspace {{a name}} pg_defaultdbase {{}}}} driver {{pg_driver timed pg_rampup 2 pg_user "tp cc"}}}}'
)


def write_jobs(path: Path, jobs: dict[str, tuple[str, str, list[str]]], timings: str = "") -> Path:
    """Write a job database: job -> benchmark, settings, and what its virtual user 1 printed."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(JOB_TABLES)
        for job, (benchmark, settings, lines) in jobs.items():
            connection.execute("INSERT INTO JOBMAIN(jobid, db, bm, jobdict) VALUES (?, 'PostgreSQL', ?, ?)",
                               (job, benchmark, settings))  # fmt: skip
            connection.executemany("INSERT INTO JOBOUTPUT VALUES (?, 1, ?)", [(job, line) for line in lines])
        connection.executescript(timings)
        connection.commit()
    return path


RUN = ["Beginning rampup time of 2 minutes", "4 Active Virtual Users configured"]
RESULT = "TEST RESULT : System achieved {} NOPM from {} PostgreSQL TPM"
OTHER_RESULT = "TEST RESULT : System achieved 60511 PostgreSQL TPM at 26207 NOPM"
QUERIES = ["query 14 completed in 2.1 seconds", "Completed 1 query set(s) in 30 seconds",
           "Geometric mean of query times returning rows (22) is 1.25000"]  # fmt: skip


def test_hammerdb_jobs_that_measured(read: Read, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = {
        "A0": ("TPC-C", SETTINGS.format(ware=10), ["CREATING TPCC SCHEMA"]),
        "A1": ("TPC-C", SETTINGS.format(ware=10), [*RUN, RESULT.format(13102, 30240)]),
        "A2": (
            "TPC-C",
            SETTINGS.format(ware=100),
            [*RUN, OTHER_RESULT],
        ),
        "A3": ("TPC-C", SETTINGS.format(ware=100), RUN),
        "B1": ("TPC-H", "tpch {pg_scale_fact 1}", QUERIES),
    }
    timings = """INSERT INTO JOBTIMING VALUES ('A1', 4, 'NEWORD', 100, 1, 5.5, 90, 550, 30, 20.5, 8, 4, 2, 3, 50, 1, 9);
        INSERT INTO JOBTIMING VALUES ('A1', 2, 'NEWORD', 25, 1, 5, 90, 99, 30, 20, 8, 4, 2, 3, 50, 0, 9);"""
    database = write_jobs(tmp_path / "hammer.DB", jobs, timings)
    rows = read("hammerdb", database, "--study", "TPC-C")
    columns = ("run", "pg_count_ware", "virtual_users", "nopm", "tpm", "neword_p95_ms")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("A1", "10", "4", "13102.0", "30240.0", "20.5"),
        ("A2", "100", "4", "26207.0", "60511.0", ""),
        ("A3", "100", "4", "failed", "", ""),
    ]
    assert rows[0]["pg_tspace"] == "a name"
    assert not {
        name for name in rows[0] if "pass" in name or "user" in name.removeprefix("virtual_user") or "host" in name
    }
    assert capsys.readouterr().err.startswith("nopm: higher is better\n")


def test_hammerdb_query_times_are_minimised(read: Read, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = {f"B{scale}": ("TPC-H", f"tpch {{pg_scale_fact {scale}}}", QUERIES) for scale in (1, 10)}
    rows = read("hammerdb", write_jobs(tmp_path / "hammer.DB", jobs))
    assert [(row["pg_scale_fact"], row["geomean_s"]) for row in rows] == [("1", "1.25"), ("10", "1.25")]
    assert "geomean_s: lower is better" in capsys.readouterr().err


def test_other_files_are_none_of_hammerdb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = {"A": ("TPC-C", SETTINGS.format(ware=1), RUN), "B": ("TPC-H", "tpch {pg_scale_fact 1}", QUERIES)}
    database = write_jobs(tmp_path / "hammer.DB", both)
    assert "expected one of TPC-C, TPC-H" in refusal(capsys, "hammerdb", database)
    broken = write_jobs(tmp_path / "broken.DB", {"A": ("TPC-C", "tpcc {a {b", RUN)})
    assert "broken.DB: job A: found no closing brace in '{a {b'" in refusal(capsys, "hammerdb", broken)
    odd = write_jobs(tmp_path / "odd.DB", {"A": ("TPC-C", "tpcc", RUN)})
    assert "odd.DB: job A: found 1 words in 'tpcc'" in refusal(capsys, "hammerdb", odd)
    with closing(sqlite3.connect(tmp_path / "view.DB")) as connection:
        connection.executescript(JOB_TABLES.replace("CREATE TABLE JOBOUTPUT(jobid TEXT, vu INTEGER, output TEXT)",
                                                    "CREATE VIEW JOBOUTPUT AS SELECT 1"))  # fmt: skip
    assert "found the view 'JOBOUTPUT'" in refusal(capsys, "hammerdb", tmp_path / "view.DB")
    (tmp_path / "hammerdb.log").write_text("Hammerdb Log @ today\n")
    assert "found no report of HammerDB" in refusal(capsys, "hammerdb", tmp_path / "hammerdb.log")
    assert "found a database next to logs" in refusal(capsys, "hammerdb", tmp_path)

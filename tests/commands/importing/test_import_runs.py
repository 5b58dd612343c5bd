"""Tables of runs that others measured become a study."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from exported_runs import export_runs, verdicts
from shipped_specs import ROOT, shipped_dbms
from tables_of_runs import GOOD, HEADER, Import

from knobscope.cli import main
from knobscope.commands.importing.columns import CASE_COLUMNS, KNOB_COLUMNS, RUN_COLUMNS, SIDE_TABLES
from knobscope.commands.importing.knobs import ImportedKnob
from knobscope.durable_files import read_sealed
from knobscope.specs import Dbms, load_study, read_knob_catalogue
from knobscope.stages.detect import run_rules, write_findings
from knobscope.tables import read_table

sys.path.append(str(ROOT / "tests/stages/detect"))

from generated_studies import StudyMaker, Truth

from knobscope.stages.detect import build_database


def run_commands(text: str) -> None:
    """Run the commands that the import printed in a shell that stands elsewhere."""
    with tempfile.TemporaryDirectory() as elsewhere:
        for line in text.strip().splitlines():
            done = subprocess.run(["sh", "-c", line], cwd=elsewhere, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def run_here(text: str) -> None:
    """Run them in this process, which has the imports: `test_a_plain_table_becomes_a_study_with_report` has a shell."""
    for line in text.strip().splitlines():
        words = shlex.split(line)
        command = next(index for index, word in enumerate(words) if word in ("detect", "report"))
        arguments = (sorted(map(str, Path("/").glob(word[1:]))) if "*" in word else [word] for word in words[command:])
        assert main([argument for found in arguments for argument in found]) == 0


@pytest.mark.slow
def test_a_plain_table_becomes_a_study_with_report(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_table(*GOOD, more=("--out", "their results/theirs")) == 0
    run_commands(capsys.readouterr().out)
    with duckdb.connect("their results/theirs/study.duckdb", read_only=True) as connection:
        effects = connection.execute(
            "SELECT value, round(exp(estimate), 2), blocks FROM effects WHERE metric = 'throughput_ops' ORDER BY value"
        ).fetchall()
        counts = connection.execute("SELECT is_sentinel, count(*) FROM runs GROUP BY ALL ORDER BY ALL").fetchall()
    assert effects == [("64", 2.06, 2), ("8", 1.02, 2)]
    assert counts == [(False, 4), (True, 3)]
    assert "Cache" in (tmp_path / "their results/theirs/report.html").read_text()


@pytest.mark.slow
def test_what_a_table_does_not_tell_is_not_known(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Intervals tell nothing of the block layer, and rows of `io_profile` without flushes nothing of flushes."""
    (tmp_path / "intervals.csv").write_text("run,t_s,ops\nr0,1,50\n")
    (tmp_path / "io.csv").write_text("run,op,requests,bytes\nr1,write,500,2048000\n")
    more = ("--table", "intervals=intervals.csv", "--table", "io_profile=io.csv")
    header = f"{HEADER},run,window_s"
    assert import_table(*(f"{line},r{number},10" for number, line in enumerate(GOOD)), header=header, more=more) == 0
    run_here(capsys.readouterr().out)
    with duckdb.connect("results/theirs/study.duckdb", read_only=True) as connection:
        monitors = dict(connection.execute("SELECT run_id, monitor FROM runs").fetchall())
        per_op = dict(connection.execute("SELECT run_id, flushes_per_op FROM run_metrics").fetchall())
        written = dict(connection.execute("SELECT run_id, writes_per_op FROM run_metrics").fetchall())
    assert {name for name, monitor in monitors.items() if monitor is not None} == {"r1"}
    assert set(per_op.values()) == {None}
    assert written["r1"] == pytest.approx(500 / 1010, rel=0.01)
    page = (tmp_path / "results/theirs/report.html").read_text()
    assert "1 records" not in page
    assert "None, None" not in page


def test_a_profile_that_tells_no_rank_leaves_that_of_the_tier(import_table: Import, tmp_path: Path) -> None:
    (tmp_path / "profile.csv").write_text("device,write_unit_bytes\ndisk,16384\n")
    assert import_table(*GOOD, more=("--table", "device_profile=profile.csv")) == 0
    profile = read_sealed(tmp_path / "results/theirs/devices/disk.json")
    assert (profile["tier"], profile["tier_rank"], profile["write_unit_bytes"]) == ("hdd", 0, 16384)


@pytest.mark.slow
def test_sessions_of_a_table_leave_it_imported_and_clients_may_be_unknown(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study with a session of its own counted as measured here, by two clients; throughput may fall in a window."""
    rows = [f"{line},day{line[0]},-0.03" for line in GOOD]
    assert import_table(*rows, header=f"{HEADER},session,window_change") == 0
    run_here(capsys.readouterr().out)
    with duckdb.connect("results/theirs/study.duckdb", read_only=True) as connection:
        sessions = connection.execute("SELECT DISTINCT session FROM runs ORDER BY ALL").fetchall()
        assert connection.execute("SELECT threads FROM cases").fetchall() == [(None,)]
    assert sessions == [("imported, day1",), ("imported, day2",)]
    page = (tmp_path / "results/theirs/report.html").read_text()
    assert "measured elsewhere" in page
    assert "2 threads" not in page.replace("\u00a0", " ")


@pytest.mark.slow
def test_an_effect_beyond_everything_that_was_measured_is_not_published(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few rows per block, and a machine that becomes twenty times slower in each: a line through them leaves the range.

    Without a look at the range, 8 and 32 would be 21 times slower than the default, beyond noise.
    """
    blocks = {
        1: ":1001 :989 16:1006 8:49.7 :49.3 32:50.1 8:49.6 16:50.7 32:50.1",
        2: ":1002 :993 :997 8:50.3 16:49.5 32:50.2",
    }
    lines = []
    for block, rows in blocks.items():
        for repeat, (value, throughput) in enumerate(row.split(":") for row in rows.split()):
            knob = f"Cache,{value},{repeat},{throughput},4,faster" if value else f",,,{throughput},,"
            lines.append(f"{block},mydb,disk,hdd,load,{knob}")
    assert import_table(*lines, header=f"{HEADER},baseline,expect") == 0
    run_here(capsys.readouterr().out)
    with duckdb.connect("results/theirs/study.duckdb", read_only=True) as connection:
        effects = connection.execute("SELECT value, runs, blocks, estimate FROM effects WHERE runs > 0").fetchall()
        findings = connection.execute("SELECT value, verdict, sentence FROM findings WHERE knob = 'Cache'").fetchall()
    assert {value: (runs, blocks) for value, runs, blocks, _ in effects} == dict.fromkeys(("8", "16", "32"), (3, 2))
    assert {value for value, *_, estimate in effects if estimate is None} == {"8", "32"}
    assert {value: verdict for value, verdict, _ in findings} == dict.fromkeys(("8", "16", "32"), "insufficient")
    for value, _, sentence in findings:
        assert ("outside the whole range that was measured" in sentence) == (value != "16")
    page = (tmp_path / "results/theirs/report.html").read_text().replace("\u00a0", " ")
    assert "None of 14 questions about DBMS and device could be judged" in page


def test_the_generated_specs_are_valid(import_table: Import, tmp_path: Path) -> None:
    header = f"{HEADER},baseline,unit,expect,mechanism,durability,threads,dedicated,workload_class"
    words = [
        "1,mydb,disk,cloud,load,,,,100,,,,,,4,true,read",
        "1,mydb,disk,cloud,load,Cache,8,0,101,16,MB,faster,cache,,4,true,read",
        "1,mydb,disk,cloud,load,mode,fast,0,300,safe,,,flush,true,4,true,read",
        "1,mydb,disk,cloud,load,share,0.25,0,99,0.5,,,,,4,true,read",
        "1,mydb,disk,cloud,load,ahead,true,0,99,false,,,,,4,true,read",
    ]
    assert import_table(*words, header=header) == 0
    study = tmp_path / "results/theirs/specs/studies/theirs.yaml"
    specs = load_study(study, tmp_path, runnable=False)
    knobs = specs.dbms["mydb"].knobs
    assert [knobs[name].type for name in ("Cache", "mode", "share", "ahead")] == ["integer", "enum", "real", "boolean"]
    assert (knobs["Cache"].range, knobs["Cache"].default, knobs["Cache"].expect) == ([8, 16], 16, "faster")
    assert (knobs["mode"].default, knobs["mode"].durability) == ("safe", True)
    assert specs.workloads["load"].threads == 4
    assert specs.workloads["load"].class_ == "read"
    assert specs.devices["disk"].is_dedicated


@pytest.mark.parametrize(
    ("texts", "values"),
    [(["1M"], [1 << 20]), (["1M", "4096"], [1 << 20, 4096]), (["128 MB"], [128 << 20]), (["7"], [7])],
)
def test_sizes_of_a_known_knob_without_a_unit_are_read_as_the_dbms_reads_them(
    texts: list[str], values: list[int]
) -> None:
    catalogue = read_knob_catalogue(ROOT / "specs/dbms/catalogue/mariadb.json")
    assert catalogue is not None
    knob = catalogue.knobs["read_buffer_size"]
    assert (knob.unit, knob.default) == (None, 131072)
    assert list(ImportedKnob(texts, knob, {}).values.values()) == values


@pytest.mark.slow
def test_knobs_of_a_known_dbms_need_no_description(import_table: Import, tmp_path: Path, sqlite: Dbms) -> None:
    lines = ["1,sqlite,disk,hdd,load,,,,100", "1,sqlite,disk,hdd,load,synchronous,off,0,900"]
    assert import_table(*lines, more=("--specs", str(ROOT / "specs"))) == 0
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    knob = specs.dbms["sqlite"].knobs["synchronous"]
    ours = sqlite.knobs["synchronous"]
    assert (knob.mechanism, knob.expect) == (ours.mechanism, ours.expect)
    assert knob.durability == {"off": True, "normal": True, "full": True}, "the table has no locking_mode"
    assert (knob.values, knob.default) == (ours.values, ours.default)


@pytest.mark.parametrize(
    ("knob", "texts", "values"),
    [
        ("innodb_flush_log_at_trx_commit", ["0.0", "2.0"], [0, 2]),  # as pandas writes a column with gaps
        ("innodb_buffer_pool_size", ["8MB", "128MB"], [8 << 20, 128 << 20]),
        ("innodb_old_blocks_pct", ["37.0", "5.0"], [37, 5]),
        ("innodb_adaptive_hash_index", ["1", "0"], [True, False]),
        ("innodb_flush_method", ["o_direct", "FSYNC"], ["O_DIRECT", "fsync"]),
    ],
)
def test_values_of_a_known_knob_are_its_own_however_they_are_spelled(
    knob: str, texts: list[str], values: list[object]
) -> None:
    spec = shipped_dbms("mysql").knobs[knob]
    imported = ImportedKnob(texts, spec, {})
    assert imported.known is not None
    assert [imported.values[text] for text in texts] == values
    assert [type(imported.values[text]) for text in texts] == [type(value) for value in values]


def test_a_row_that_states_the_default_is_one_of_the_default_configuration(import_table: Import) -> None:
    assert import_table(*GOOD, "1,mydb,disk,hdd,load,Cache,16,0,98") == 0
    with duckdb.connect() as connection:
        plan = "FROM read_parquet('results/theirs/**/plan/*.parquet')"
        query = f"SELECT is_sentinel, count(*) {plan} GROUP BY ALL ORDER BY ALL"
        assert connection.execute(query).fetchall() == [(False, 4), (True, 4)]


def test_words_without_an_order_cannot_be_raised(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["1,mydb,disk,hdd,load,,,,100,,", "1,mydb,disk,hdd,load,mode,fast,0,900,faster,"]
    assert import_table(*lines, header=f"{HEADER},expect,order") == 0
    assert "mydb: mode: `expect` is not used" in capsys.readouterr().err
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    assert specs.dbms["mydb"].knobs["mode"].expect is None


def test_words_with_an_order_and_special_numbers(import_table: Import, tmp_path: Path) -> None:
    lines = [
        "1,mydb,disk,hdd,load,,,,100,,,",
        "1,mydb,disk,hdd,load,mode,fast,0,900,faster,slow|medium|fast,",
        "1,mydb,disk,hdd,load,delay,0,0,900,,,0",
        "1,mydb,disk,hdd,load,delay,10,0,900,,,0",
        "1,mydb,disk,hdd,load,delay,20,0,900,,,0",
    ]
    assert import_table(*lines, header=f"{HEADER},expect,order,special") == 0
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    knobs = specs.dbms["mydb"].knobs
    assert (knobs["mode"].expect, knobs["mode"].values) == ("faster", ["slow", "medium", "fast"])
    assert (knobs["delay"].range, list(knobs["delay"].special)) == ([10, 20], [0])


def test_failed_runs_may_lack_a_throughput(import_table: Import) -> None:
    lines = [f"{line},ok" for line in GOOD]
    lines[1] = "1,mydb,disk,hdd,load,Cache,8,0,,timeout"
    assert import_table(*lines, header=f"{HEADER},status") == 0


@pytest.mark.long
def test_generated_studies_get_the_same_verdicts_after_export_and_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: Callable[..., str]
) -> None:
    truth = {
        ("nvme", "page", "16"): Truth(throughput=-0.5, unaligned=0.3),
        ("hdd", "page", "16"): Truth(throughput=0.4),
        ("sync", "none"): Truth(throughput=1.0, writes=-0.4),
        ("ahead", "true"): Truth(throughput=-0.3, cpu=0.5, write_run=0.4),
        ("pause", "100"): Truth(throughput=-0.4),
    }
    maker = StudyMaker(tmp_path / "ours", devices=("nvme", "hdd"), repeats=3, depth_one=0.99, truth=truth)
    specs = maker.specs()
    ours = tmp_path / "ours/study.duckdb"
    build_database(maker.files(specs), specs, ours)
    with duckdb.connect(str(ours), read_only=True) as connection:
        found = run_rules(connection, specs)
    write_findings(ours, found)

    monkeypatch.chdir(tmp_path)
    arguments = export_runs(ours, specs, tmp_path / "csv")
    run_commands(prints("import", *arguments, "--study", "theirs"))
    assert main(["finding", "theirs"]) == 0, "known by its name, though its specs are below its results"
    assert verdicts(tmp_path / "results/theirs/study.duckdb") == verdicts(ours)
    assert {row[6] for row in verdicts(ours)} == {"mismatch", "none", "insufficient"}


def test_the_documentation_names_every_column_and_table() -> None:
    page = (ROOT / "docs/how-to/import.md").read_text()
    for name in [*RUN_COLUMNS, *CASE_COLUMNS, *KNOB_COLUMNS, *SIDE_TABLES]:
        if name not in ("phase", "round"):
            assert f"`{name}`" in page, name


def test_windows_of_imported_intervals_are_described(import_table: Import, tmp_path: Path) -> None:
    rows = [f"r{run},{second},{ops}" for run in range(len(GOOD)) for second, ops in enumerate((500, 500, 500), 1)]
    rows[2] = "r0,3,0"
    (tmp_path / "intervals.csv").write_text("run,t_s,ops\n" + "\n".join(rows) + "\n")
    lines = [f"{line},r{number}" for number, line in enumerate(GOOD)]
    assert import_table(*lines, header=f"{HEADER},run", more=("--table", "intervals=intervals.csv")) == 0
    found = duckdb.sql(
        "SELECT run_id, window_pause_s FROM 'results/theirs/*/*/*/runs/*/runs.parquet' ORDER BY 1"
    ).fetchall()
    assert found == [("r0", 1.0), *((f"r{number}", 0.0) for number in range(1, len(GOOD)))]


def test_cells_are_read_as_rank_reads_them(import_table: Import, tmp_path: Path) -> None:
    lines = [
        "1;mydb;disk;hdd;load;;;;8.120,5;;;20 ms",
        "1;mydb;disk;hdd;load;Cache;64MB;0;9.315,25;1GB;Yes;1.5ms",
        "1;mydb;disk;hdd;load;Cache;512kB;0;TIMEOUT;1GB;yes;",
        "1;mydb;disk;hdd;load;ahead;On;0;900;off;;900us",
        "1;mydb;disk;hdd;load;Cache;default;1;8.001;1GB;true;10us",
    ]
    header = f"{HEADER},baseline,durability,latency_p95_us".replace(",", ";")
    assert import_table(*lines, header=header) == 0
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    cache = specs.dbms["mydb"].knobs["Cache"]
    assert (cache.default, cache.range) == (1 << 30, [512 << 10, 1 << 30])
    assert specs.dbms["mydb"].knobs["ahead"].type == "boolean"
    files = "results/theirs/*/*/*/runs/*/runs.parquet"
    query = f"SELECT status, throughput_ops, latency_p95_us FROM '{files}' ORDER BY position"  # noqa: S608 - ours
    assert duckdb.sql(query).fetchall() == [
        ("ok", 8120.5, 20000.0), ("ok", 9315.25, 1500.0), ("timeout", None, None), ("ok", 900.0, 900.0),
        ("ok", 8001.0, 10.0),
    ]  # fmt: skip


def test_files_do_not_follow_blocks(import_table: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small blocks share a file, a large one has several; what lies in the files is the same."""
    (Path("intervals.csv")).write_text("run,t_s,ops\n" + "".join(f"r{run},1,{run}\n" for run in range(len(GOOD))))
    lines = [f"{line},r{number}" for number, line in enumerate(GOOD)]
    contents = []
    for most, files in ((10_000, 1), (3, 3)):
        monkeypatch.setattr("knobscope.commands.importing.study._RUNS_PER_FILE", most)
        out = Path(f"files of {most}")
        more = ("--table", "intervals=intervals.csv", "--out", str(out))
        assert import_table(*lines, header=f"{HEADER},run", more=more) == 0
        found = {"plan": sorted(out.glob("*/*/*/plan/*.parquet"))}
        found |= {table: sorted(out.glob(f"*/*/*/runs/*/{table}.parquet")) for table in ("runs", "intervals")}
        assert {table: len(paths) for table, paths in found.items()} == dict.fromkeys(found, files)
        contents.append([read_table(paths).to_csv() for paths in found.values()])
    assert contents[0] == contents[1]
    assert {block: len(rows) for block, rows in read_table(found["runs"]).groupby("block_id")} == {
        "mydb/disk/load/1": 4,
        "mydb/disk/load/2": 3,
    }

"""Tables that others measured: damage is found and named, and so is what a table does not tell of its order."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest

from knobscope.cli import main
from knobscope.specs import load_study
from knobscope.stages.detect import build_database, run_rules, write_findings
from knobscope.stages.detect.database import StudyFiles
from knobscope.stages.report import render_report

COLUMNS = "dbms,device,tier,workload,knob,value,throughput_ops,latency_p95_us,cpu_s,window_s"
#: Value of the knob (none: the default) -> how much faster it is.
EFFECTS = {"": 1.0, "8": 1.0, "16": 1.0, "64": 2.0}
Table = list[dict[str, str]]


def draw_table(rng: np.random.Generator, blocks: int = 3) -> Table:
    """Rows of a table as somebody writes it: each block in an order of its own, figures with the usual digits."""
    rows: Table = []
    for block in range(blocks):
        order = ["", *rng.permutation(["8", "16", "64", "8", "16", "64"]), ""]
        for position, value in enumerate(order):
            speed = 8000 * EFFECTS[value] * np.exp(rng.normal(0, 0.02))
            rows.append(
                {
                    "run": f"r{block}-{position}",
                    "block": f"day{block}",
                    "dbms": "mydb",
                    "device": "disk",
                    "tier": "sata_ssd",
                    "workload": "load",
                    "knob": "Cache" if value else "",
                    "value": value,
                    "baseline": "4" if value else "",
                    "throughput_ops": f"{speed:.2f}",
                    "latency_p95_us": f"{9e6 / speed * np.exp(rng.normal(0, 0.02)):.1f}",
                    "cpu_s": f"{8 * np.exp(rng.normal(0, 0.02)):.3f}",
                    "window_s": "20",
                }
            )
    return rows


def write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def draw_intervals(rows: Table, rng: np.random.Generator) -> dict[str, list[dict[str, str]]]:
    return {
        row["run"]: [
            {"run": row["run"], "t_s": str(step), "ops": str(rng.poisson(float(row["throughput_ops"])))}
            for step in range(1, 21)
        ]
        for row in rows
    }


class Imported:
    """What a table became: database and, where a test asks for it, the first screen of the report."""

    def __init__(self, folder: Path) -> None:
        self._folder, study = folder, folder / "specs/studies/theirs.yaml"
        self._specs = load_study(study, folder, runnable=False)
        runs, plans = sorted(folder.glob("*/*/*/runs/*")), sorted(folder.glob("*/*/*/plan/*"))
        self.database = folder / "study.duckdb"
        files = StudyFiles(runs, plans, [], sorted(folder.glob("devices/*")))
        build_database(files, self._specs, self.database)

    @cached_property
    def answer(self) -> str:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            found = run_rules(connection, self._specs)
        write_findings(self.database, found)
        render_report(self.database, self._specs, self._folder / "report.html")
        page = (self._folder / "report.html").read_text(encoding="utf-8").split("<!DOCTYPE html>", 1)[1]
        (answer,) = (one for one in ElementTree.fromstring(page).iter() if one.get("class") == "answer")  # noqa: S314
        return " ".join("".join(answer.itertext()).replace("\u00a0", " ").split())

    def query(self, sql: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    @property
    def guards(self) -> dict[object, object]:
        return dict(self.query("SELECT guard, count(*)::INTEGER FROM set_aside_runs GROUP BY guard"))


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Imported]:
    """Return a function that imports rows, with intervals where there are some."""
    monkeypatch.chdir(tmp_path)

    def run(rows: Table, intervals: dict[str, list[dict[str, str]]] | None = None) -> Imported:
        write_csv(tmp_path / "runs.csv", rows)
        more = []
        if intervals is not None:
            write_csv(tmp_path / "intervals.csv", [row for series in intervals.values() for row in series])
            more = ["--table", "intervals=intervals.csv"]
        assert main(["import", "runs.csv", "--study", "theirs", *more]) == 0
        return Imported(tmp_path / "results/theirs")

    return run


@pytest.mark.slow
def test_a_good_table_loses_no_run(importing: Callable[..., Imported]) -> None:
    rng = np.random.default_rng(1)
    rows = draw_table(rng)
    study = importing(rows, draw_intervals(rows, rng))
    assert study.guards == {}
    assert "excluded:" not in study.answer
    assert "has no blocks" not in study.answer


@pytest.mark.slow
def test_a_table_that_was_appended_to_itself_counts_once(importing: Callable[..., Imported]) -> None:
    """The copies carry the names of other days, as where somebody collected the same files twice."""
    rows = draw_table(np.random.default_rng(2))
    copies = [{**row, "run": row["run"] + "x", "block": row["block"] + "x"} for row in rows]
    study = importing(rows + copies)
    assert study.guards == {"copied": 24}
    assert study.query("SELECT count(*) FROM runs WHERE status = 'ok'") == [(24,)]
    assert study.query("SELECT DISTINCT blocks FROM effects WHERE metric = 'throughput_ops'") == [(3,)]
    assert "24 of 48 runs (50 %) were excluded: 24 have exactly the same figures as other runs." in study.answer


@pytest.mark.slow
def test_rows_that_stand_twice_in_their_block_count_once(importing: Callable[..., Imported]) -> None:
    rows = draw_table(np.random.default_rng(3))
    twice = [row for one in rows for row in (one, {**one, "run": one["run"] + "x"})]
    assert importing(twice).guards == {"copied": 24}


@pytest.mark.slow
def test_damaged_series_are_named(importing: Callable[..., Imported]) -> None:
    rng = np.random.default_rng(4)
    rows = draw_table(rng)
    intervals = draw_intervals(rows, rng)
    frozen, silent = intervals["r1-0"], intervals["r2-3"]
    frozen[8:] = [{**row, "ops": frozen[7]["ops"]} for row in frozen[8:]]
    silent[8:] = [{**row, "ops": "0"} for row in silent[8:]]
    del intervals["r0-5"][8:]
    study = importing(rows, intervals)
    found = study.query("SELECT run_id, guard FROM set_aside_runs ORDER BY ALL")
    assert found == [("r0-5", "truncated"), ("r1-0", "frozen"), ("r2-3", "silent")]
    assert "3 of 24 runs (12 %) were excluded: " in study.answer
    for words in (
        "1 has a series that does not change",
        "1 has no intervals at the end of its window",
        "1 completed no operation for a third of its window or more",
    ):
        assert words in study.answer


@pytest.mark.slow
def test_a_day_on_another_level_is_named_and_keeps_its_effects(importing: Callable[..., Imported]) -> None:
    rows = draw_table(np.random.default_rng(5))
    for row in rows:
        if row["block"] == "day1":
            row["throughput_ops"] = f"{float(row['throughput_ops']) / 5:.2f}"
    study = importing(rows)
    assert study.guards == {}
    assert study.query("SELECT block_id FROM blocks WHERE other_level") == [("mydb/disk/load/day1",)]
    assert "1 of 3 sessions of mydb · disk · load was 5" in study.answer
    assert "x slower than the others throughout." in study.answer
    ((estimate, blocks),) = study.query(
        "SELECT exp(estimate), blocks FROM effects WHERE metric = 'throughput_ops' AND value = '64'"
    )
    assert (estimate, blocks) == (pytest.approx(2, rel=0.05), 3)


@pytest.mark.slow
def test_two_days_on_two_levels_have_no_usual_one(importing: Callable[..., Imported]) -> None:
    rows = draw_table(np.random.default_rng(6), blocks=2)
    for row in rows[8:]:
        row["throughput_ops"] = f"{float(row['throughput_ops']) * 5:.2f}"
    study = importing(rows)
    assert study.query("SELECT count(*) FROM blocks WHERE other_level") == [(2,)]
    assert "The 2 sessions of mydb · disk · load are on two levels" in study.answer


@pytest.mark.slow
def test_a_table_without_blocks_is_judged_and_says_so(importing: Callable[..., Imported]) -> None:
    """Without the column; in `test_without_blocks_a_value_that_was_measured_once_has_no_interval` it is empty."""
    rows = draw_table(np.random.default_rng(7))
    study = importing([{name: cell for name, cell in row.items() if name != "block"} for row in rows])
    assert "The imported table has no blocks" in study.answer
    assert "assumption that each was measured in random order" in study.answer
    effects = study.query(
        "SELECT value, exp(estimate), low > 0, high < 0, q_value <= 0.05, blocks FROM effects "
        "WHERE metric = 'throughput_ops' ORDER BY value::INTEGER"
    )
    assert [row[0] for row in effects] == ["8", "16", "64"]
    assert effects[2][1] == pytest.approx(2, rel=0.1)
    assert [row[4] for row in effects] == [False, False, True]
    assert {row[5] for row in effects} == {1}


@pytest.mark.slow
def test_without_blocks_a_value_that_was_measured_once_has_no_interval(importing: Callable[..., Imported]) -> None:
    rows = [row for row in draw_table(np.random.default_rng(8)) if row["value"] != "16" or row["run"].startswith("r0")]
    seen = [row for row in rows if row["value"] == "16"]
    rows = [{**row, "block": ""} for row in rows if row not in seen[1:]]
    found = importing(rows).query("SELECT value, low IS NULL FROM effects WHERE metric = 'throughput_ops' ORDER BY ALL")
    assert found == [("16", True), ("64", False), ("8", False)]


@pytest.mark.slow
def test_a_value_of_a_day_without_the_default_configuration_has_no_effect(
    importing: Callable[..., Imported], capsys: pytest.CaptureFixture[str]
) -> None:
    """A day that is 30 % faster must not become an effect: its runs have nothing to be compared with."""
    rows = draw_table(np.random.default_rng(12))
    rows = [row for row in rows if row["value"] not in (("", "8") if row["block"] == "day2" else ("16",))]
    for row in rows:
        is_second = row["block"] == "day2"
        row["started_at"] = f"2026-11-2{2 if is_second else 1}"
        row["throughput_ops"] = f"{float(row['throughput_ops']) * (1.3 if is_second else 1):.2f}"
    study = importing([{name: cell for name, cell in row.items() if name != "block"} for row in rows])
    assert "4 of 16 runs are of sessions without a run of the default configuration" in capsys.readouterr().err
    assert study.query(
        "SELECT value, low IS NULL FROM effects WHERE metric = 'throughput_ops' ORDER BY value::INTEGER"
    ) == [("8", False), ("16", True), ("64", False)]
    assert study.query("SELECT session, reason FROM blocks WHERE treatment = 'dropped'") == [
        (
            "imported, from 2026-11-22T00:00:00 on",
            "no successful run of the default configuration in the same session to compare with",
        )
    ]
    assert "as several where times or order show separate days" in study.answer


def test_without_blocks_the_default_configuration_has_to_be_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [row for row in draw_table(np.random.default_rng(9)) if row["knob"]]
    write_csv(tmp_path / "runs.csv", [{**row, "block": "" if index else "day0"} for index, row in enumerate(rows)])
    said = refuses("import", "runs.csv", "--study", "theirs")
    assert "runs.csv:3: block: found nothing; expected a value in every row, or in none" in said
    assert (
        "runs.csv:3: knob: found mydb/disk/load without a run of the default configuration; "
        "expected at least one row of the case with empty `knob` and `value`" in said
    )


def test_a_table_may_expect_something_of_what_is_a_control_for_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["block,dbms,device,tier,workload,knob,value,throughput_ops,expect"]
    lines += ["1,sqlite,disk,hdd,load,,,100,", "1,sqlite,disk,hdd,load,recursive_triggers,true,101,slower"]
    lines += ["1,sqlite,disk,hdd,load,legacy_alter_table,true,102,"]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    specs = Path(__file__).parents[3] / "specs"
    assert main(["import", "runs.csv", "--study", "theirs", "--specs", str(specs)]) == 0
    study = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    knobs = study.dbms["sqlite"].knobs
    assert (knobs["recursive_triggers"].control, knobs["recursive_triggers"].expect) == (False, "slower")
    assert knobs["legacy_alter_table"].control

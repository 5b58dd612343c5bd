"""The study's database: every table is there, filled from the files that were named, whole or not at all."""

import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from generated_studies import Study

from knobscope.durable_files import read_sealed, write_sealed
from knobscope.errors import UserError
from knobscope.stages.detect import VIEWS, StudyFiles, build_database, create_schema, write_findings
from knobscope.tables import TABLES, write_table

Make = Callable[..., Study]

FIT = {
    "runs": 40,
    "stopped": False,
    "reason": "early",
    "model": "anova",
    "terms": ["page"],
    "r2_splits": [0.5, 0.9, 0.8],
    "importance": [
        {"knob": "page", "rank": 1, "importance": 0.7, "permutation": 0.5, "above_noise": True, "selected": True}
    ],
    "points": [{"knob": "page", "type": "knee", "value": 16.0, "turn_ratio": 2.5}],
    "trustworthy": True,
    "reason_trust": "",
}


def in_own_file(study: Study, folder: Path) -> Study:
    """Return the study with a copy of its database, to be changed."""
    return replace(study, database=Path(shutil.copy(study.database, folder)))


@contextmanager
def live_views(study: Study, *tables: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with these tables of a study, whose views follow what is changed in them."""
    with duckdb.connect() as connection:
        create_schema(connection)
        connection.execute(f"ATTACH '{study.database}' AS study (READ_ONLY)")
        for table in tables:
            connection.execute(f"INSERT INTO {table} FROM study.{table}")
        yield connection


@pytest.mark.slow
def test_all_tables_and_views_exist_with_their_columns(make_study: Make) -> None:
    study = make_study()
    with duckdb.connect(str(study.database), read_only=True) as connection:
        for table, columns in TABLES.items():
            assert connection.execute(f"FROM {table} LIMIT 0").df().columns.tolist() == list(columns)
        for view in VIEWS:
            connection.execute(f"FROM {view}")
    assert study.query("SELECT count(*) AS n FROM findings")["n"][0] == 0
    assert study.query("SELECT count(*) AS n FROM ok_runs")["n"][0] == 24


def test_knob_values_are_words_of_the_specs(make_study: Make) -> None:
    study = make_study()
    rows = study.query("SELECT DISTINCT knob, value FROM knob_values WHERE dbms = 'simdb'")
    values = set(rows.itertuples(index=False, name=None))
    assert {("ahead", "true"), ("ahead", "false"), ("page", "16"), ("sync", "none")} <= values
    changes = study.query("FROM single_changes")
    assert len(changes) == 9
    assert set(changes.loc[changes["knob"] == "page", "baseline"]) == {"4"}


@pytest.mark.parametrize(
    ("window_s", "share"),
    [(10, 0.8), (8.5, 0.8 / 0.85), (20, 0.8), (1, 1), (None, 0.8)],
    ids=["as watched", "watched for longer", "watched for a part", "busy beyond it", "not known"],
)
def test_a_device_is_busy_for_a_share_of_the_measured_window(
    make_study: Make, window_s: float | None, share: float
) -> None:
    """The runs were watched for 10 s, in which the device had requests for 8."""
    with live_views(make_study(), "runs", "queue_depth") as connection:
        connection.execute("UPDATE runs SET window_s = ?", [window_s])
        rows = connection.execute("SELECT busy_share FROM run_depths").fetchall()
    assert len(rows) == 24
    assert [busy for (busy,) in rows] == pytest.approx([share] * 24)


def test_what_the_monitor_did_not_judge_is_unknown_but_what_was_not_issued_is_none(make_study: Make) -> None:
    with live_views(make_study(), "runs", "io_profile") as connection:
        first, second = (row[0] for row in connection.execute("SELECT run_id FROM runs LIMIT 2").fetchall())
        connection.execute("UPDATE io_profile SET aligned_requests = NULL WHERE run_id = ?", [first])
        connection.execute("DELETE FROM io_profile WHERE run_id = ?", [second])
        rows = connection.execute("SELECT run_id, writes_per_op, unaligned_writes_per_op FROM run_metrics").df()
    rows = rows.set_index("run_id")
    assert rows.loc[first, "writes_per_op"] > 1
    assert math.isnan(rows.loc[first, "unaligned_writes_per_op"])
    assert rows.loc[second].tolist() == [0.0, 0.0]


def test_alignment_to_another_unit_than_that_of_the_profile_is_unknown(make_study: Make, tmp_path: Path) -> None:
    """A run that is in the store is not measured again when the device is: its profile says 16 KiB by now."""
    cases: dict[str, tuple[dict[str, Any], bool]] = {
        "nvme-now": ({"aligned_to_bytes": 16384, "started_at": "2026-11-01"}, True),
        "nvme-other-unit": ({"aligned_to_bytes": 4096, "started_at": "2026-11-03"}, False),
        "nvme-not-recorded": ({"started_at": "2026-11-03"}, True),
        "nvme-before-the-profile": ({"started_at": "2026-11-01"}, False),
        "nvme-imported": ({"started_at": "2026-11-01", "session": "imported"}, True),
    }
    of_device = {device: {"columns": columns} for device, (columns, _) in cases.items()}
    study = in_own_file(make_study(devices=tuple(cases), of_device=of_device), tmp_path)
    now = [tmp_path / profile.name for profile in study.files.devices]
    for path, profile in zip(now, study.files.devices, strict=True):
        write_sealed(path, {**read_sealed(profile), "measured_at": "2026-11-02"})
    build_database(replace(study.files, devices=now), study.specs, study.database)
    counted = study.query(
        "SELECT device, count(aligned_requests) AS n, count(*) AS rows FROM io_profile JOIN runs USING (run_id) "
        "WHERE op = 'write' GROUP BY device"
    )
    findings = study.judge("io_size").set_index("device")
    for device, (_, is_known) in cases.items():
        assert counted.set_index("device").loc[device].tolist() == [24 if is_known else 0, 24], device
        sentences = findings.loc[[device], "sentence"]
        assert sentences.str.contains("recorded which writes fill units of 16").any() is not is_known, device


def test_the_profile_says_the_tier_of_runs_that_were_stored_with_another_one(make_study: Make, tmp_path: Path) -> None:
    study = in_own_file(make_study(), tmp_path)
    (profile,) = study.files.devices
    corrected = tmp_path / profile.name
    write_sealed(corrected, {**read_sealed(profile), "tier": "cloud"})
    build_database(replace(study.files, devices=[corrected]), study.specs, study.database)
    assert study.query("SELECT DISTINCT tier FROM runs")["tier"].tolist() == ["cloud"]


def test_devices_and_cases(make_study: Make) -> None:
    study = make_study(devices=("hdd", "nvme"))
    profiles = study.query("FROM device_profile ORDER BY device")
    assert profiles[["device", "tier_rank"]].to_numpy().tolist() == [["hdd", 1], ["nvme", 3]]
    assert study.query("SELECT count(*) AS n FROM device_curve WHERE pattern = 'randwrite'")["n"][0] == 2
    cases = study.query("FROM cases ORDER BY device")
    assert cases["device"].tolist() == ["hdd", "nvme"]
    assert cases["dedicated"].tolist() == [True, True]
    assert cases["threads"].tolist() == [2, 2]


def test_fits_keep_all_rounds_and_the_last_ranking(make_study: Make, tmp_path: Path) -> None:
    study = in_own_file(make_study(), tmp_path)
    folder = tmp_path / "results/sim/simdb/nvme/ycsb-a/fit"
    folder.mkdir(parents=True)
    for round_ in (0, 1, 10):
        fit = {**FIT, "stopped": round_ == 10, "importance": [{**FIT["importance"][0], "importance": round_ / 10}]}
        write_sealed(folder / f"{round_}.json", fit)
    fits = [folder / f"{round_}.json" for round_ in (10, 0, 1)]
    build_database(replace(study.files, fits=fits), study.specs, study.database)
    rows = study.query("FROM fits ORDER BY round")
    assert rows["round"].tolist() == [0, 1, 10]
    assert rows["stopped"].tolist() == [False, False, True]
    assert rows.loc[0, ["device", "r2_min", "r2_median"]].tolist() == ["nvme", 0.5, 0.8]
    importance = study.query("FROM importance")
    assert importance[["round", "model", "importance"]].to_numpy().tolist() == [[10, "anova", 1.0]]
    assert study.query("SELECT value, turn_ratio FROM important_points").to_numpy().tolist() == [["16", 2.5]]


def test_a_fit_without_finite_r2_has_none(make_study: Make, tmp_path: Path) -> None:
    study = in_own_file(make_study(), tmp_path)
    folder = tmp_path / "results/sim/simdb/nvme/ycsb-a/fit"
    folder.mkdir(parents=True)
    fits = [folder / "0.json", folder / "1.json"]
    for path, scores in zip(fits, ([], [None, None, 0.5]), strict=True):
        write_sealed(path, {**FIT, "r2_splits": scores, "importance": [], "points": [], "model": None})
    build_database(replace(study.files, fits=fits), study.specs, study.database)
    assert study.query("SELECT r2_min, r2_median FROM fits").isna().to_numpy().tolist() == [[True, True]] * 2


def test_a_block_without_runs_is_named_and_nothing_is_left(make_study: Make, tmp_path: Path) -> None:
    study = make_study()
    out = tmp_path / "other.duckdb"
    with pytest.raises(UserError, match=r"no runs.parquet in .*missing"):
        build_database(StudyFiles([tmp_path / "missing"], study.files.plans), study.specs, out)
    assert not out.exists()


def test_a_column_that_a_file_lacks_is_unknown(make_study: Make, tmp_path: Path) -> None:
    study = make_study()
    older, out = tmp_path / "older", tmp_path / "study.duckdb"
    older.mkdir()
    duckdb.execute(f"COPY (SELECT 'older' AS run_id, 'failed_start' AS status) TO '{older}/runs.parquet'")
    build_database(replace(study.files, runs=[older, *study.files.runs]), study.specs, out)
    with duckdb.connect(str(out), read_only=True) as connection:
        runs = connection.execute("SELECT run_id, device, throughput_ops FROM runs").fetchall()
        tables = {run for (run,) in connection.execute("SELECT run_id FROM io_profile").fetchall()}
    unknown = [run for run, device, throughput in runs if device is None or throughput is None]
    assert unknown == ["older"]
    assert tables == {run for run, *_ in runs} - {"older"}


def test_building_again_replaces_the_database(make_study: Make, tmp_path: Path) -> None:
    study = in_own_file(make_study(), tmp_path)
    assert study.query("SELECT count(*) AS n FROM runs")["n"][0] == 24
    write_table(tmp_path / "block/runs.parquet", "runs", [{"run_id": "one more"}])
    build_database(replace(study.files, runs=[*study.files.runs, tmp_path / "block"]), study.specs, study.database)
    assert study.query("SELECT count(*) AS n FROM runs")["n"][0] == 25
    assert [path.name for path in study.database.parent.glob("study.duckdb*")] == ["study.duckdb"]


def test_a_study_without_a_sweep_has_empty_effects(make_study: Make) -> None:
    study = make_study(columns={"phase": "screen"})
    assert study.query("SELECT count(*) AS n FROM effects")["n"][0] == 0
    assert study.judge("io_size")["verdict"].tolist() == ["insufficient"]
    assert study.judge("io_parallelism")["verdict"].tolist() == ["insufficient"]
    assert study.judge("tier").empty


def test_findings_are_replaced_all_or_none(make_study: Make, tmp_path: Path) -> None:
    study = in_own_file(make_study(), tmp_path)
    for count in (2, 1):
        write_findings(study.database, [{"rule": "tier", "verdict": "none"}] * count)
        assert len(study.query("FROM findings")) == count
    with pytest.raises(duckdb.Error):
        write_findings(study.database, [{"rule": "tier"}, {"penalty": "no number"}])
    assert study.query("SELECT verdict FROM findings")["verdict"].tolist() == ["none"]


def test_a_few_requests_have_no_share() -> None:
    """29 reads, all in order, are no sequential I/O; 30 writes are enough to say so."""
    with duckdb.connect() as connection:
        create_schema(connection)
        connection.execute("INSERT INTO runs (run_id, status, monitor, operations) VALUES ('r', 'ok', 'bpf', 1000)")
        connection.execute(
            "INSERT INTO io_profile (run_id, op, requests, bytes, aligned_requests, sequential_requests) "
            "VALUES ('r', 'read', 29, 0, 29, 29), ('r', 'write', 30, 0, 15, 30)"
        )
        shares = "read_sequential_share, write_sequential_share, unaligned_write_share"
        assert connection.execute(f"SELECT {shares} FROM run_metrics").fetchall() == [(None, 1.0, 0.5)]  # noqa: S608

"""Builds a study's DuckDB file: all tables of the interface, filled from the files of earlier stages, and views."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.detect.access import contrast_access
from knobscope.detect.effects import add_effects, add_frame
from knobscope.detect.interference import measure_interference
from knobscope.detect.io_related import add_io_related
from knobscope.detect.order import level_text
from knobscope.detect.tuning import add_tuned
from knobscope.detect.views import MACROS, VIEWS
from knobscope.errors import UserError
from knobscope.select.drift import rank_drift
from knobscope.specs import StudySpecs
from knobscope.tables import TABLES

if TYPE_CHECKING:
    import duckdb

__all__ = ["StudyFiles", "add_table", "build_database"]

#: What a block directory may hold: everything that is known by run.
_RUN_TABLES = [table for table, columns in TABLES.items() if "run_id" in columns]


@dataclass(frozen=True)
class StudyFiles:
    """What earlier stages wrote.

    Fits lie at `<dbms>/<device>/<workload>/fit/<round>.json`, which names their case; `prior.json` where a model took
    the place of screening.
    """

    runs: Sequence[Path]  # block directories
    plans: Sequence[Path]
    fits: Sequence[Path] = ()
    devices: Sequence[Path] = ()  # profiles


def build_database(files: StudyFiles, specs: StudySpecs, out: Path) -> None:
    """Write the database of a study, whole or not at all; table `findings` is there, and empty.

    Raises UserError when a block directory holds no runs.
    """
    import duckdb

    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    part.unlink(missing_ok=True)
    with duckdb.connect(str(part)) as connection:
        for table, columns in TABLES.items():
            definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({definition})")
        _add_runs(connection, files.runs)
        _add_plans(connection, files.plans)
        _add_fits(connection, files.fits, specs)
        _add_devices(connection, files.devices)
        _insert(connection, "cases", _case_rows(specs))
        _insert(connection, "knobs", _knob_rows(specs))
        for signature, body in MACROS.items():
            connection.execute(f"CREATE MACRO {signature} AS ({body})")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {query}")
        add_effects(connection, specs)
        add_io_related(connection, specs.study.thresholds.fdr)
        add_tuned(connection)
        add_frame(connection, "interference", measure_interference(connection))
        add_frame(connection, "access_contrasts", contrast_access(connection))
    part.replace(out)


def add_table(database: Path, table: str, parquet: Path) -> None:
    """Replace the rows of one table of a study's database by those of a parquet file, all or none.

    Raises UserError for a table that the interface does not know.
    """
    import duckdb

    if table not in TABLES:
        raise UserError(f"no table {table!r} in a study's database; expected one of {', '.join(TABLES)}")
    with duckdb.connect(str(database)) as connection:
        connection.begin()
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
        _add_parquet(connection, table, [parquet])
        connection.commit()


def _add_runs(connection: "duckdb.DuckDBPyConnection", blocks: Sequence[Path]) -> None:
    if empty := [block for block in blocks if not (block / "runs.parquet").is_file()]:
        raise UserError(f"no runs.parquet in {empty[0]}; expected a directory that `knobscope measure` wrote")
    for table in _RUN_TABLES:
        paths = [path for block in blocks if (path := block / f"{table}.parquet").is_file()]
        _add_parquet(connection, table, paths)


def _add_plans(connection: "duckdb.DuckDBPyConnection", plans: Sequence[Path]) -> None:
    _add_parquet(connection, "plan", plans)
    connection.execute(
        "INSERT INTO knob_values SELECT DISTINCT config_id, split_part(block_id, '/', 1), k.key, k.value ->> '$' "
        "FROM plan, json_each(configuration) k ORDER BY ALL"
    )


def _add_parquet(connection: "duckdb.DuckDBPyConnection", table: str, paths: Sequence[Path]) -> None:
    if paths:
        connection.execute(
            f"INSERT INTO {table} BY NAME SELECT * FROM read_parquet(?, union_by_name = true)",  # noqa: S608
            [[str(path) for path in paths]],
        )


def _add_fits(connection: "duckdb.DuckDBPyConnection", paths: Sequence[Path], specs: StudySpecs) -> None:
    last: dict[tuple[str, str, str], tuple[int | None, dict[str, Any]]] = {}
    for path in sorted(paths, key=lambda path: (path.parent, path.stem.zfill(9))):
        dbms, device, workload = path.resolve().parts[-5:-2]
        case, round_ = (dbms, device, workload), None if path.stem == "prior" else int(path.stem)
        fit: dict[str, Any] = json.loads(path.read_text())
        row = {**fit, "round": round_, **_summarise_scores(fit["r2_splits"])}
        _insert(connection, "fits", [_of_case(case, row)])
        last[case] = round_, fit
    for case, (round_, fit) in last.items():
        common = {"round": round_, "model": fit["model"]}
        _insert(connection, "importance", [_of_case(case, {**common, **row}) for row in fit["importance"]])
        knobs = specs.dbms[case[0]].knobs
        points = [{**row, "value": level_text(knobs.get(row["knob"]), row["value"])} for row in fit["points"]]
        _insert(connection, "important_points", [_of_case(case, row) for row in points])
    measured = {
        case: fit for case, (round_, fit) in last.items() if round_ is not None
    }  # a prior ranks all cases alike
    drift, overlap = rank_drift(measured)
    _insert(connection, "rank_drift", drift)
    _insert(connection, "rank_overlap", overlap)


def _summarise_scores(scores: list[float | None]) -> dict[str, float | None]:
    """Return smallest and median R2; None where it is minus infinity, which JSON has as null."""
    numbers = [float("-inf") if score is None else score for score in scores] or [float("-inf")]
    figures = {"r2_min": min(numbers), "r2_median": statistics.median(numbers)}
    return {name: figure if math.isfinite(figure) else None for name, figure in figures.items()}


def _of_case(case: tuple[str, ...], row: dict[str, Any]) -> dict[str, Any]:
    dbms, device, workload = case
    return {**row, "dbms": dbms, "device": device, "workload": workload}


def _add_devices(connection: "duckdb.DuckDBPyConnection", profiles: Sequence[Path]) -> None:
    for path in profiles:
        profile: dict[str, Any] = json.loads(path.read_text())
        _insert(connection, "device_profile", [profile])
        curves = [{"device": profile["device"], **point} for point in profile.get("curves", [])]
        _insert(connection, "device_curve", curves)


def _case_rows(specs: StudySpecs) -> list[dict[str, Any]]:
    return [
        {
            "dbms": case.dbms,
            "device": case.device,
            "workload": case.workload,
            "workload_class": specs.workloads[case.workload].class_,
            "threads": specs.workloads[case.workload].threads,
            "dedicated": specs.devices[case.device].is_dedicated,
        }
        for case in specs.cases
    ]


def _knob_rows(specs: StudySpecs) -> list[dict[str, Any]]:
    return [
        {"dbms": name, "knob": knob, "mechanism": spec.mechanism, "in_study": knob in specs.study.knobs.get(name, {})}
        for name, dbms in specs.dbms.items()
        for knob, spec in dbms.knobs.items()
    ]


def _insert(connection: "duckdb.DuckDBPyConnection", table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Insert the columns that the table has; what else a JSON file holds is not for the database."""
    columns = TABLES[table]
    values = [[row.get(column) for column in columns] for row in rows]
    if values:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608

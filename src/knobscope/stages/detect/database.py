"""Builds a study's DuckDB file: all tables of the interface, filled from the files of earlier stages, and views."""

import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from knobscope.durable_files import blame_content, read_sealed, whole_file
from knobscope.errors import UserError
from knobscope.processes import open_temporary, usable_cores
from knobscope.processes.parallel import one_thread
from knobscope.specs import StudySpecs
from knobscope.stages.detect.access import contrast_access
from knobscope.stages.detect.contrasts import contrast_levels
from knobscope.stages.detect.effects import add_effects, add_frame
from knobscope.stages.detect.guards import set_aside_runs
from knobscope.stages.detect.interference import measure_interference
from knobscope.stages.detect.io_related import add_io_related
from knobscope.stages.detect.listeners import rename_listeners
from knobscope.stages.detect.pairs import add_pair_effects
from knobscope.stages.detect.setup import setup_rows
from knobscope.stages.detect.tuning import add_tuned
from knobscope.stages.detect.value_order import level_text
from knobscope.stages.detect.winners import name_fastest
from knobscope.stages.plan import list_left_out
from knobscope.statistics.drift import rank_drift
from knobscope.study_data.opening import MOST_ROWS
from knobscope.tables import (
    LOCKED,
    TABLES,
    DeviceProfile,
    describe_refusal,
    fetch_rows,
    insert_rows,
    lock,
    read_document,
    require_readable,
)
from knobscope.tables.detection import CaseRow, FindingRow, KnobRow
from knobscope.tables.macros import MACROS, TABLE_MACROS
from knobscope.tables.reference import comment_tables, define_tables
from knobscope.tables.views import BLOCK_VIEWS, OPEN_VIEWS, RUN_VIEWS, VIEWS

if TYPE_CHECKING:
    import duckdb

_Row = TypeVar("_Row")

#: What a block directory may hold: everything that is known by run.
_RUN_TABLES = [table for table, columns in TABLES.items() if "run_id" in columns and table != "set_aside_runs"]

#: A profile may have been measured anew since: runs take its tier, and keep the unit that their requests were aligned
#: to. Earlier versions did not record that: runs from before the profile were counted by another one.
_FOLLOW_PROFILES = """
    UPDATE runs SET tier = coalesce(p.tier, runs.tier) FROM device_profile p WHERE p.device = runs.device;
    UPDATE io_profile SET aligned_requests = NULL, aligned_share = NULL
    FROM runs r JOIN device_profile p USING (device)
    WHERE r.run_id = io_profile.run_id AND coalesce(
        aligned_to_bytes <> coalesce(preferred_write_bytes, 4096),
        started_at < measured_at AND NOT starts_with(session, 'imported')
    )
"""


@dataclass(frozen=True)
class StudyFiles:
    """What earlier stages wrote.

    Fits lie at `<dbms>/<device>/<workload>/fit/<round>.json`, which names their case; `prior.json` where a prior
    replaced screening.
    """

    runs: Sequence[Path]  # block directories
    plans: Sequence[Path]
    fits: Sequence[Path] = ()
    devices: Sequence[Path] = ()  # profiles


def build_database(files: StudyFiles, specs: StudySpecs, out: Path) -> None:
    """Write the database of a study, whole or not at all; table `findings` is there, and empty.

    Each query and each calculation has one thread: sums are then the same to the last digit every time, and what is
    calculated is so little that several threads mostly wait for each other.

    Raises UserError when a block directory holds no runs.
    """
    import duckdb

    tables = {**_find_tables(files.runs), "plan": files.plans}
    with (
        open_temporary("knobscope-spill-") as spill,
        whole_file(out) as part,
        duckdb.connect(str(part), config={"threads": 1}) as connection,
        one_thread(),
    ):
        lock(connection, [path for paths in tables.values() for path in paths], temp_directory=str(spill))
        connection.begin()  # few transactions: else each of the hundreds of statements waits for the disk
        connection.execute(";".join(_define_schema()))
        connection.commit()
        _add_parquet(connection, tables)
        connection.begin()
        _add_knob_values(connection)
        set_aside_runs(connection)
        for add, paths, command in ((_add_fits, files.fits, "select"), (_add_devices, files.devices, "characterise")):
            with blame_content(*_common(paths), expected=f"a file that `knobscope {command}` wrote"):
                add(connection, paths, specs)
        connection.execute(_FOLLOW_PROFILES)
        insert_rows(connection, "cases", _case_rows(connection, specs))
        rename_listeners(connection, specs)
        insert_rows(connection, "knobs", _knob_rows(specs))
        insert_rows(connection, "setup", setup_rows(specs))
        for case in specs.cases:
            insert_rows(connection, "left_out_values", [dict(row) for row in list_left_out(specs, case)])
        _store_views(connection, RUN_VIEWS)
        add_effects(connection, specs)
        add_pair_effects(connection, specs)
        _store_views(connection, BLOCK_VIEWS)
        add_frame(connection, "level_contrasts", contrast_levels(connection))
        add_io_related(connection, specs.study.thresholds.fdr)
        add_tuned(connection)
        add_frame(connection, "interference", measure_interference(connection))
        add_frame(connection, "access_contrasts", contrast_access(connection))
        insert_rows(connection, "fastest", name_fastest(connection, specs))
        connection.commit()


def create_schema(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create all tables, macros and views of a study's database, empty."""
    views = (f"CREATE VIEW {name} AS {query}" for name, query in VIEWS.items())
    connection.execute(";".join([*_define_schema(), *views]))  # one call takes half the time of many


def _define_schema() -> Iterator[str]:
    """Yield the statements that make the tables and macros."""
    yield from define_tables()
    yield from (f"CREATE MACRO {signature} AS ({body})" for signature, body in MACROS.items())
    yield from (f"CREATE MACRO {signature} AS TABLE {body}" for signature, body in TABLE_MACROS.items())


def _store_views(connection: "duckdb.DuckDBPyConnection", views: Mapping[str, str]) -> None:
    """Make views of the study's database, most of them as tables: what they ask must be there, and change no more."""
    for name, query in views.items():
        connection.execute(f"CREATE {'VIEW' if name in OPEN_VIEWS else 'TABLE'} {name} AS {query}")


def write_findings(database: Path, findings: Iterable[FindingRow], *, describe: bool = False) -> None:
    """Replace the findings of a study's database, all or none; rows have the columns of the table.

    `describe` writes also the meaning of all tables and columns, for those who open the database themselves.
    """
    import duckdb

    with duckdb.connect(str(database), config=dict(LOCKED)) as connection:
        connection.begin()
        connection.execute("DELETE FROM findings")
        insert_rows(connection, "findings", findings)
        if describe:
            connection.execute(";".join(comment_tables()))
        connection.commit()


def read_findings(connection: "duckdb.DuckDBPyConnection") -> list[FindingRow]:
    """Return the rows of table `findings`."""
    return read_rows(connection, FindingRow, "findings")


def read_rows(connection: "duckdb.DuckDBPyConnection", kind: type[_Row], table: str) -> list[_Row]:
    """Return the rows of a table, which `kind` declares."""
    return cast("list[_Row]", fetch_rows(connection.execute(f'FROM "{table}"')))


def withdraw(sentence: str, reason: str) -> str:
    """Return the sentence of a finding whose effect or cause an experiment refuted, with the reason first."""
    return f"Refuted: {reason}. Original finding: {sentence}"


def write_rows(database: Path, tables: Mapping[str, Iterable[Mapping[str, Any]]], replaced: Iterable[str] = ()) -> None:
    """Add rows to tables of a study's database, all or none; those of some tables are replaced."""
    import duckdb

    with duckdb.connect(str(database), config=dict(LOCKED)) as connection:
        connection.begin()
        for table in replaced:
            connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - a table of ours
        for table, rows in tables.items():
            insert_rows(connection, table, rows)
        connection.commit()


def replace_effects(database: Path, effects: Iterable[Mapping[str, Any]]) -> None:
    """Replace effects on throughput by newly measured ones; the sweep's estimates stay in column `swept`."""
    import duckdb

    figures = ("estimate", "low", "high", "standard_error", "degrees")
    names = ("dbms", "device", "workload", "knob", "value")
    update = (
        f"UPDATE effects SET swept = estimate, {', '.join(f'{name} = ?' for name in figures)} "  # noqa: S608 - our names
        f"WHERE metric = 'throughput_ops' AND {' AND '.join(f'{name} = ?' for name in names)}"
    )
    with duckdb.connect(str(database), config=dict(LOCKED)) as connection:
        for row in effects:
            connection.execute(update, [row[name] for name in (*figures, *names)])


def _find_tables(blocks: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of all tables about single runs, by table."""
    files = {block: {entry.name for entry in os.scandir(block)} if block.is_dir() else set() for block in blocks}
    if empty := [block for block, names in files.items() if "runs.parquet" not in names]:
        raise UserError(f"no runs.parquet in {empty[0]}; expected a directory that `knobscope measure` wrote")
    return {
        table: [block / name for block, names in files.items() if (name := f"{table}.parquet") in names]
        for table in _RUN_TABLES
    }


def _common(paths: Sequence[Path]) -> list[Path]:
    """Return the directory of all paths, or the only path, as a list; an empty one of none."""
    return [Path(os.path.commonpath(paths))] if paths else []


def _add_parquet(connection: "duckdb.DuckDBPyConnection", files: Mapping[str, Sequence[Path]]) -> None:
    """Insert what parquet files hold, by table, a transaction each; a column that a file lacks is NULL.

    As many tables are read at once as there are processors: of thousands of small files, several threads of one query
    get less done than one, in twice the processor time. DamagedFileError: a file is no parquet file. UserError: it
    holds no such table.
    """
    import duckdb

    def read(table: str) -> None:
        names = [str(path) for path in files[table]]
        with connection.cursor() as cursor:
            # Before the first is read: a small file may hold more rows than the disk.
            rows = cursor.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [names]).fetchall()[0][0]
            if rows > MOST_ROWS:
                raise UserError(f"{files[table][0].parent}: table `{table}` has {rows:,} rows; more than {MOST_ROWS:,}")
            cursor.execute(
                f"INSERT INTO {table} BY NAME FROM read_parquet(?, union_by_name = true)",
                [names],
            )

    with ThreadPoolExecutor(usable_cores()) as pool:
        for table in (reading := {table: pool.submit(read, table) for table, paths in files.items() if paths}):
            try:
                reading[table].result()
            except duckdb.Error as error:
                require_readable(files[table])
                raise UserError(
                    f"{files[table][0].parent}: table `{table}`: {describe_refusal(error)}; expected files that "
                    "knobscope wrote"
                ) from error


def _add_knob_values(connection: "duckdb.DuckDBPyConnection") -> None:
    connection.execute(
        "INSERT INTO knob_values SELECT DISTINCT config_id, dbms, k.key, k.value ->> '$' FROM ("
        "SELECT DISTINCT config_id, split_part(block_id, '/', 1) AS dbms, configuration FROM plan"
        "), json_each(configuration) k ORDER BY ALL"
    )


def _add_fits(connection: "duckdb.DuckDBPyConnection", paths: Sequence[Path], specs: StudySpecs) -> None:
    last: dict[tuple[str, str, str], tuple[int | None, dict[str, Any]]] = {}
    fits, importance, points, worst, costly = [], [], [], [], []
    tunability: list[dict[str, Any]] = []
    effects: list[dict[str, Any]] = []
    for path in sorted(paths, key=lambda path: (path.parent, path.stem.zfill(9))):
        dbms, device, workload = path.resolve().parts[-5:-2]
        case, round_ = (dbms, device, workload), None if path.stem == "prior" else int(path.stem)
        fit = read_sealed(path)
        tunable = fit.get("tunability") or {}  # a prior does not have it, nor do fits of earlier versions
        row = {**tunable, **fit, "round": round_, **_summarise_scores(fit["r2_splits"])}
        row |= {name: ", ".join(fit.get(name, [])) or None for name in ("warm_start", "expected")}
        fits.append(_of_case(case, row))
        costly += [
            _of_case(case, {**setting, "round": round_, "setting": json.dumps(setting["values"])})
            for setting in fit.get("costly_settings", [])  # fits of earlier versions do not have them
        ]
        last[case] = round_, fit
    for case, (round_, fit) in last.items():
        common = {"round": round_, "model": fit["model"]}
        importance += [_of_case(case, {**common, **row}) for row in fit["importance"]]
        knobs = specs.dbms[case[0]].knobs
        for rows, key in ((tunability, "knobs"), (effects, "effects")):
            rows += [
                _of_case(case, {**row, "value": level_text(knobs.get(row["knob"]), row["value"])})
                for row in (fit.get("tunability") or {}).get(key, [])
                if key == "effects" or not _is_risk(specs, case[0], row)
            ]
        points += [
            _of_case(case, {**row, "value": level_text(knobs.get(row["knob"]), row["value"]), "beside": _beside(row)})
            for row in fit["points"]
        ]
        worst += [
            _of_case(case, {**row, "configuration": json.dumps(row["configuration"], sort_keys=True)})
            for row in fit.get("worst_predicted", [])  # fits of earlier versions do not have it
        ]
    measured = {
        case: fit for case, (round_, fit) in last.items() if round_ is not None
    }  # a prior ranks all cases alike
    drift, overlap = rank_drift(measured)
    tables = {
        "fits": fits,
        "importance": importance,
        "tunability": tunability,
        "predicted_effects": effects,
        "important_points": points,
        "worst_predicted": worst,
        "costly_settings": costly,
        "rank_drift": drift,
        "rank_overlap": overlap,
    }
    for table, rows in tables.items():
        insert_rows(connection, table, rows)


def _is_risk(specs: StudySpecs, dbms: str, row: Mapping[str, Any]) -> bool:
    """Whether a spec that was corrected since the ranking calls a tunable value a risk; the default is none."""
    knob = specs.dbms[dbms].knobs.get(row["knob"])
    baseline = specs.study.baseline.get(dbms, {})
    if knob is None or row["value"] == baseline.get(row["knob"], knob.default):
        return False
    return bool(specs.dbms[dbms].list_risks({**baseline, row["knob"]: row["value"]}, [row["knob"]]))


def _beside(point: Mapping[str, Any]) -> str | None:
    return json.dumps(point["beside"]) if point.get("beside") else None  # fits of earlier versions do not have it


def _summarise_scores(scores: list[float | None]) -> dict[str, float | None]:
    """Return smallest and median R2; None where it is minus infinity, which JSON has as null."""
    numbers = [float("-inf") if score is None else score for score in scores] or [float("-inf")]
    figures = {"r2_min": min(numbers), "r2_median": statistics.median(numbers)}
    return {name: figure if math.isfinite(figure) else None for name, figure in figures.items()}


def _of_case(case: tuple[str, ...], row: dict[str, Any]) -> dict[str, Any]:
    dbms, device, workload = case
    return {**row, "dbms": dbms, "device": device, "workload": workload}


def _add_devices(connection: "duckdb.DuckDBPyConnection", profiles: Sequence[Path], _specs: StudySpecs) -> None:
    for path in profiles:
        profile = read_document(path, DeviceProfile)
        insert_rows(connection, "device_profile", [profile])
        curves = [{"device": profile["device"], **point} for point in profile.get("curves", [])]
        insert_rows(connection, "device_curve", curves)
        insert_rows(connection, "device_property", profile.get("properties", []))


def _case_rows(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> list[CaseRow]:
    """Return what the specs say; a table that was imported may not tell how many clients there were."""
    query = "SELECT bool_and(starts_with(session, 'imported')) FROM runs"
    (is_imported,) = connection.execute(query).fetchall()[0]
    workloads = specs.workloads
    return [
        {
            "dbms": case.dbms,
            "device": case.device,
            "workload": case.workload,
            "workload_class": workloads[case.workload].class_,
            "threads": None
            if is_imported and "threads" not in workloads[case.workload].model_fields_set
            else workloads[case.workload].threads,
            "read_order": workloads[case.workload].read_order,
            "dedicated": specs.devices[case.device].is_dedicated,
        }
        for case in specs.cases
    ]


def _knob_rows(specs: StudySpecs) -> list[KnobRow]:
    return [
        {
            "dbms": name,
            "knob": knob,
            "mechanism": spec.mechanism,
            "in_study": knob in specs.study.knobs.get(name, {}),
            "control": spec.control,
        }
        for name, dbms in specs.dbms.items()
        for knob, spec in dbms.knobs.items()
    ]

"""Writes imported runs as a study: specs, plans, runs and device profiles, the files that `detect` takes."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from knobscope.commands.importing.columns import RUN_COLUMNS
from knobscope.commands.importing.knobs import ImportedKnob
from knobscope.commands.importing.runs import ImportedRun, ImportedTable
from knobscope.commands.importing.specs import spec_files
from knobscope.durable_files import write_sealed
from knobscope.specs import Dbms, Value
from knobscope.stages.characterise.curves import rank_tier
from knobscope.stages.plan.blocks import config_id_of
from knobscope.statistics.steadiness import summarise_window
from knobscope.tables import TABLES, write_files

#: A file to write: path, name of its table, rows.
File = tuple[Path, str, Sequence[dict[str, Any]]]

#: Runs per file, of however many blocks: column `block_id` says which. A file costs as much as a thousand runs in it.
_RUNS_PER_FILE = 10_000
#: After so many runs it says how many are written.
_RUNS_PER_LINE = 50_000

#: Tables that only someone who counts every request can fill.
_BLOCK_LAYER = ("io_profile", "io_sizes", "queue_depth", "io_latency", "io_series", "files", "submitters")

#: Where nothing is known of a cloud disk's latency, it counts as a network volume.
_CLOUD_READ_US = 1000.0


def write_study(
    table: ImportedTable,
    name: str,
    knobs: Mapping[str, Mapping[str, ImportedKnob]],
    known_dbms: Mapping[str, Dbms],
    out: Path,
) -> Path:
    """Write the study below `out` and return its spec; `known_dbms` are the specs of DBMSs that there are."""
    import yaml

    for path, content in spec_files(name, table, knobs, known_dbms).items():
        file = out / "specs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    write_files(_files_of_runs(table, name, knobs, out))
    _write_devices(table, out)
    return out / f"specs/studies/{name}.yaml"


def _files_of_runs(
    table: ImportedTable, name: str, knobs: Mapping[str, Mapping[str, ImportedKnob]], out: Path
) -> Iterator[File]:
    """Yield the tables of the runs and their plans, a part of a case at a time; says how far it is."""
    phase = "screen" if table.is_designed else "sweep"
    side = {kind: _by_run(rows) for kind, rows in table.side.items() if "run_id" in TABLES[kind]}
    watched = {run for kind in _BLOCK_LAYER for run in side.get(kind, {})}
    written = reported_runs = 0
    cases = {run.case: str(run.case) for run in table.runs}
    ordered = sorted(table.runs, key=lambda run: (cases[run.case], run.block, run.position))
    for case, of_case in groupby(ordered, key=lambda run: run.case):
        settings = _Settings(case.dbms, knobs[case.dbms])
        for number, runs in enumerate(_parts(of_case)):
            part = f"{phase}-0-{number}"
            rows = [_plan_row(run, settings, phase) for run in runs]
            directory = out / str(case) / "runs" / part
            records = [
                {
                    **_window_of(side.get("intervals", {}).get(run.name, [])),
                    **_run_row(run, row, name, run.name in watched),
                }
                for run, row in zip(runs, rows, strict=True)
            ]
            yield directory / "runs.parquet", "runs", records
            for kind, rows_of_run in side.items():
                yield (
                    directory / f"{kind}.parquet",
                    kind,
                    [row for run in runs for row in rows_of_run.get(run.name, [])],
                )
            yield out / str(case) / "plan" / f"{part}.parquet", "plan", rows
            written += len(runs)
            if written - reported_runs >= _RUNS_PER_LINE:
                print(f"{written} of {len(ordered)} runs written", file=sys.stderr, flush=True)
                reported_runs = written


def _parts(runs: Iterator[ImportedRun]) -> Iterator[list[ImportedRun]]:
    while part := list(islice(runs, _RUNS_PER_FILE)):
        yield part


class _Settings:
    """The configurations of a DBMS: few, and each in many runs."""

    def __init__(self, dbms: str, knobs: Mapping[str, ImportedKnob]) -> None:
        self.dbms, self.knobs = dbms, knobs
        self.default: dict[str, Value] = {name: imported_knob.reference for name, imported_knob in knobs.items()}
        self.default_id = config_id_of(dbms, self.default)
        self.known: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}

    def of(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return the columns of `plan` that say which configuration a run has."""
        key = tuple(settings.items())
        if key not in self.known:
            configuration = self.default | {name: self.knobs[name].values[text] for name, text in key}
            text = json.dumps(configuration, sort_keys=True)
            config_id = config_id_of(self.dbms, configuration)
            self.known[key] = {"config_id": config_id, "configuration": text}
        return self.known[key]


def _by_run(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["run_id"], []).append(row)
    return groups


def _plan_row(run: ImportedRun, settings: _Settings, phase: str) -> dict[str, Any]:
    columns = settings.of(run.settings)
    return {
        "block_id": f"{run.case}/{run.block}",
        "phase": phase,
        "is_sentinel": columns["config_id"] == settings.default_id,
        "round": 0,
        "position": run.position,
        "repeat": run.repeat,
        "load_id": "",
        "is_chosen": False,
        **columns,
    }


def _run_row(run: ImportedRun, plan: Mapping[str, Any], study: str, watched: bool) -> dict[str, Any]:
    cells = {name: run.line[name] for name in RUN_COLUMNS if name in TABLES["runs"] and run.line[name] is not None}
    row: dict[str, Any] = {
        "status": run.line["failure"] or "ok",
        "monitor": "bpf" if watched else None,
        **cells,
        "session": run.session,
        **{name: plan[name] for name in plan if name in TABLES["runs"]},
        "run_id": run.name,
        "study": study,
        "dbms": run.case.dbms,
        "device": run.case.device,
        "workload": run.case.workload,
        "tier": run.line["tier"],
        "workload_class": run.line["workload_class"] or "write",
    }
    if row.get("operations") is None and row.get("window_s") and row.get("throughput_ops"):
        row["operations"] = min(round(row["throughput_ops"] * row["window_s"]), (1 << 63) - 1)
    return row


def _window_of(intervals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how steady a window was, where its intervals are known; columns of the table of runs go first."""
    rows = [row for row in intervals if row.get("t_s") is not None and row.get("ops") is not None]
    rows.sort(key=lambda row: float(row["t_s"]))
    return summarise_window([row["t_s"] for row in rows], [row["ops"] for row in rows])


def _write_devices(table: ImportedTable, out: Path) -> None:
    """Write a profile per device: at least its rank among the tiers, without which tiers cannot be compared."""
    profiles = {row["device"]: row for row in table.side.get("device_profile", [])}
    curves = table.side.get("device_curve", [])
    for device in dict.fromkeys(run.case.device for run in table.runs):
        tier = table.case_facts["device", device]["tier"]
        profile = {
            "device": device,
            "tier": tier,
            "tier_rank": rank_tier(tier, _CLOUD_READ_US),
            **{column: value for column, value in profiles.get(device, {}).items() if value is not None},
        }
        profile["curves"] = [row for row in curves if row["device"] == device]
        write_sealed(out / "devices" / f"{device}.json", profile)

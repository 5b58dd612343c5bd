"""What a study came to: its stored runs and those of its tables that are no measured figures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb

#: Tables and what of them is the same each time.
_QUERIES = {
    "runs": "SELECT run_id, block_id, phase, round, config_id, is_sentinel, repeat, status, reason, disturbance, dbms,"
    " dbms_version, device, tier, workload, workload_class, monitor FROM runs",
    "knob_values": "SELECT config_id, dbms, knob, value FROM knob_values",
    "effective_values": "SELECT run_id, knob, requested, effective FROM effective_values",
    "plan": "SELECT block_id, position, config_id, is_sentinel, repeat, load_id, configuration FROM plan",
    "checks": "SELECT run_id, condition, holds FROM checks",
    "phases": "SELECT run_id, phase FROM phases",
    "effects": "SELECT DISTINCT dbms, device, workload, knob, value, metric FROM effects",
    "findings": "SELECT DISTINCT rule, dbms, device, workload FROM findings",
}
#: Where Snakemake stands before the first stage.
_START_S = 2.0

Found = dict[str, Any]


def read_store(results: Path) -> dict[str, str]:
    """Return the stored runs, by name of their file, with a hash of what they hold."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (results / "store").glob("*.json")}


def read_found(results: Path) -> Found:
    """Return what a finished study came to, and how long it took once its device was characterised."""
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        tables = {name: sorted(map(_show, connection.execute(sql).fetchall())) for name, sql in _QUERIES.items()}
    profile = next((results / "devices").glob("*.json"))
    duration = (results / "report.html").stat().st_mtime - profile.stat().st_mtime + _START_S
    return {"tables": tables, "duration_s": round(duration, 1)}


def find_lost(results: Path, stored: dict[str, str], descriptions: str) -> list[str]:
    """Return in words which of the runs stored before a fault are not stored any more as they were."""
    now = read_store(results)
    return [
        f"stored run {name} is {'another' if name in now else 'lost'}"
        for name, content in stored.items()
        if now.get(name) != content and name not in descriptions  # a damaged run has to be measured again
    ]


def find_violations(results: Path, reference: Found) -> list[str]:
    """Return in words what differs from the undisturbed study."""
    if not (results / "report.html").exists():
        return ["there is no report"]
    violations = _find_doubled(results)
    try:
        tables = read_found(results)["tables"]
    except duckdb.Error as error:
        return [*violations, f"the tables cannot be read: {error}"]
    for name, rows in reference["tables"].items():
        missing, added = sorted(set(rows) - set(tables[name])), sorted(set(tables[name]) - set(rows))
        if missing or added or len(rows) != len(tables[name]):
            violations.append(f"table {name} has {len(added)} other rows ({(added or missing or ['doubled'])[0]})")
    return violations


def _find_doubled(results: Path) -> list[str]:
    """Say which runs the tables hold with another beginning than the store does."""
    begins = {}
    for path in (results / "store").glob("*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))["run"]
        begins[run["run_id"]] = run["started_at"]
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT run_id, strftime(started_at, '%Y-%m-%dT%H:%M:%S.%f') FROM runs").fetchall()
    doubled = [run for run, begin in rows if run in begins and begins[run][:23] != begin[:23]]
    return [f"runs {', '.join(doubled)} were measured twice"] if doubled else []


def _show(row: tuple[Any, ...]) -> str:
    return json.dumps(row, default=str)

"""From a finished study to a prior: its last fits, with what they were measured on."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knobscope import __version__
from knobscope.durable_files import read_sealed, write_text
from knobscope.errors import UserError
from knobscope.specs import Prior, StudySpecs
from knobscope.tables import DeviceProfile, read_document

_HEAD = "# Written by `knobscope models save`. With `screening: {prior: %s}` a study takes it instead of screening.\n"
_KNOB_KEYS = ("knob", "rank", "rank_low", "rank_high", "importance", "permutation", "above_noise", "stands_out")


def make_prior(specs: StudySpecs, results: Path, name: str) -> Prior:
    """Return what a finished study learned; `results` is its folder.

    UserError: the study is not finished, has fitted nothing, started from a prior itself, or ranks knobs by latency.
    """
    if (response := specs.study.screening.response) != "throughput":
        raise UserError(
            f"study {specs.study.name} ranks knobs by {response}; expected one that ranks them by throughput"
        )
    from knobscope.study_data.study import StudyData

    with StudyData.open(results / "study.duckdb", specs) as data:
        fits = data.rows(
            "SELECT * FROM fits QUALIFY row_number() OVER (PARTITION BY dbms, device, workload ORDER BY round DESC) = 1"
            " ORDER BY dbms, device, workload"
        )
        if not fits:
            raise UserError(f"{results}/study.duckdb holds no fit: the study has no screening runs to learn from")
        if prior := next((fit["prior"] for fit in fits if fit["prior"]), None):
            raise UserError(f"study {specs.study.name} started from prior {prior!r}; it has no ranking of its own")
        runs = data.rows("SELECT run_id FROM runs WHERE phase = 'screen' ORDER BY run_id")
        content = {
            "name": name,
            "study": specs.study.name,
            "study_hash": _hash_study(specs, [row["run_id"] for row in runs]),
            "saved": datetime.now(UTC).date().isoformat(),
            "knobscope": __version__,
            "rankings": [_ranking(results, fit, _facts_of_runs(data, fit)) for fit in fits],
        }
    try:
        return Prior.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{results}/study.duckdb makes no prior: {problems}") from error


def _facts_of_runs(data: Any, fit: Mapping[str, Any]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = data.rows(
        "SELECT arg_max(dbms_version, started_at) AS dbms_version, any_value(workload_class) AS workload_class,"
        " max(started_at) AS measured FROM runs"
        " WHERE phase = 'screen' AND status = 'ok' AND dbms = ? AND device = ? AND workload = ?",
        fit["dbms"],
        fit["device"],
        fit["workload"],
    )
    return rows[0]


def _ranking(results: Path, fit: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any]:
    case = f"{fit['dbms']}/{fit['device']}/{fit['workload']}"
    path = results / case / "fit" / f"{fit['round']}.json"
    if not path.is_file():
        raise UserError(f"{path} does not exist, though the study's database holds that fit; run the study again")
    if runs["measured"] is None:
        raise UserError(
            f"{case}: no run of its screening has a time (`started_at`), without which nobody can tell its age"
        )
    details = read_sealed(path)
    profile = read_document(results / "devices" / f"{fit['device']}.json", DeviceProfile)
    return {
        **{key: fit[key] for key in ("dbms", "device", "workload", "model", "runs")},
        "dbms_version": runs["dbms_version"],
        "workload_class": runs["workload_class"],
        "measured": runs["measured"].isoformat(timespec="seconds"),
        "device_profile": {key: value for key, value in profile.items() if not isinstance(value, dict | list)},
        "holdout_r2": _short(details["holdout_r2"]),
        "trustworthy": details["trustworthy"],
        "reason": details["reason_trust"],
        "knobs": [{key: _short(knob[key]) for key in _KNOB_KEYS} for knob in details["importance"]],
    }


def _short(value: Any) -> Any:
    """Round what has more digits than it can mean."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _hash_study(specs: StudySpecs, run_ids: list[str]) -> str:
    """Hash what the study asked and the runs that answered; a run's id is the hash of all that defines it."""
    content = {
        "study": specs.study.model_dump(mode="json"),
        "dbms": {name: spec.model_dump(mode="json") for name, spec in specs.dbms.items()},
        "devices": {name: spec.model_dump(mode="json") for name, spec in specs.devices.items()},
        "workloads": {name: spec.model_dump(mode="json") for name, spec in specs.workloads.items()},
        "runs": run_ids,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def write_prior(prior: Prior, directory: Path) -> Path:
    """Write the prior as `directory`/NAME.yaml, whole or not at all; returns the path."""
    import yaml

    path = directory / f"{prior.name}.yaml"
    content = yaml.safe_dump(prior.model_dump(mode="json"), sort_keys=False, width=110, allow_unicode=True)
    write_text(path, _HEAD % prior.name + content)
    return path

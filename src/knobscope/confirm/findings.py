"""Puts the cause that a finding names to the test."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knobscope.characterise.fio import FioFile, FioRefusedError, find_fio, lay_out_file
from knobscope.confirm.evidence import Side, find_preferred_bytes, find_sides, name_value, read_pattern
from knobscope.confirm.experiment import compare, measure_replicas
from knobscope.confirm.pattern import Pattern
from knobscope.confirm.verdict import CAUSES
from knobscope.devices import OpenDevice, device_lock
from knobscope.errors import UserError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["confirm_findings", "names_testable_cause"]

_FILE_BYTES = 256 << 20


class _UntestableError(Exception):
    """Why a finding cannot be put to the test, in words."""


def names_testable_cause(finding: Mapping[str, Any]) -> bool:
    """Whether the finding is a mismatch whose rule blames a factor that fio can change alone."""
    return finding["verdict"] == "mismatch" and finding["rule"] in CAUSES


def confirm_findings(
    findings: "pd.DataFrame",
    connection: "duckdb.DuckDBPyConnection",
    opened_devices: Mapping[str, OpenDevice],
    seconds_per_finding: float,
) -> list[dict[str, Any]]:
    """Return the findings (rows of `findings`, same order) with `confirmed` and `confirmation` filled in.

    `connection` is a study's database: runs, knob_values, io_profile, io_sizes, queue_depth, device_profile. A device
    is locked while fio is at work on it. What cannot be tested is `not_tested`, and `confirmation` says why; other
    verdicts than mismatch have no confirmation. Raises UserError when fio is missing.
    """
    import pandas as pd

    rows = [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in findings.to_dict("records")
    ]
    for row in rows:
        row.update(confirmed="not_tested", confirmation=None)
        if row["verdict"] == "mismatch" and row["rule"] not in CAUSES:
            row["confirmation"] = f"rule {row['rule']} blames no factor that fio could change alone"
    testable = [row for row in rows if names_testable_cause(row)]
    if testable:
        find_fio()
    for device in dict.fromkeys(row["device"] for row in testable):
        concerned = [row for row in testable if row["device"] == device]
        _confirm_on_device(concerned, connection, opened_devices.get(str(device)), seconds_per_finding)
    return rows


def _confirm_on_device(
    rows: list[dict[str, Any]],
    connection: "duckdb.DuckDBPyConnection",
    opened: OpenDevice | None,
    seconds: float,
) -> None:
    """Fill in the rows of one device; one that cannot be used leaves them untested, with the reason."""
    try:
        if opened is None:
            raise _UntestableError(f"device {rows[0]['device']} is not at hand")
        with device_lock(opened.block), lay_out_file(opened, _FILE_BYTES) as file:
            for number, row in enumerate(rows, start=1):
                label = f"confirm {row['device']} {number}/{len(rows)} {row['rule']} {name_value(row)}"
                try:
                    row.update(_test(row, connection, file, seconds, label))
                except (_UntestableError, FioRefusedError) as error:
                    row["confirmation"] = f"not tested: {error}"
    except (_UntestableError, UserError) as error:
        for row in rows:
            row["confirmation"] = f"not tested: {error}"  # nothing was measured yet: both come before the first test


def _test(
    row: dict[str, Any], connection: "duckdb.DuckDBPyConnection", file: FioFile, seconds: float, label: str
) -> dict[str, str]:
    cause, preferred = CAUSES[row["rule"]], find_preferred_bytes(connection, row["device"])
    if preferred is None:
        raise _UntestableError(f"device {row['device']} has no profile")
    slower, faster = find_sides(connection, row)
    original, changed = cause.change(_require_pattern(row, slower, connection), preferred)
    other = read_pattern(connection, faster.runs) if faster.runs else None
    patterns = [original, changed, *([other] if other else [])]
    figures = measure_replicas(patterns, cause.figure, file, seconds, label)
    ratio = compare(figures[1], figures[0])
    confirmed = cause.holds(ratio)
    sentence = (
        f"fio repeated the I/O of {slower.name} on {row['device']} ({original.describe()}); "
        f"with {cause.words(preferred)} and nothing else changed, {cause.figure_words} were {ratio}: "
        f"{cause.yes if confirmed else cause.no}."
    )
    if other:
        sentence += f" The I/O of {faster.name} reached {compare(figures[2], figures[0])}."
    return {"confirmed": "yes" if confirmed else "no", "confirmation": sentence}


def _require_pattern(row: dict[str, Any], side: Side, connection: "duckdb.DuckDBPyConnection") -> Pattern:
    if not side.runs:
        raise _UntestableError(f"no run has {side.name} and all other knobs as in the default configuration")
    pattern = read_pattern(connection, side.runs)
    if pattern is None:
        raise _UntestableError("BPF watched none of its runs without losing events, so their requests are not known")
    if row["rule"] == "io_size" and not pattern.write_sizes:
        raise _UntestableError("its runs wrote nothing to the device")
    return pattern

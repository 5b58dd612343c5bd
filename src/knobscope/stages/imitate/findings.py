"""Puts the cause that a finding names to the test."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knobscope.devices import BlockDevice, OpenDevice
from knobscope.errors import UserError
from knobscope.specs import Rule, RuleCause
from knobscope.stages.characterise.fio import FioFile, FioRefusedError, find_fio, lay_out_file
from knobscope.stages.detect import find_busy_share, is_timed, withdraw
from knobscope.stages.imitate.evidence import (
    find_clients,
    find_preferred_bytes,
    find_sides,
    name_value,
    read_pattern,
)
from knobscope.stages.imitate.replica import find_aligned_part
from knobscope.stages.imitate.trials import Setting, Stand, try_cause
from knobscope.tables.detection import FindingRow
from knobscope.text.sentences import Sentences

if TYPE_CHECKING:
    import duckdb

_FILE_BYTES = 256 << 20

Opening = AbstractContextManager[Sequence[OpenDevice]]


class _UntestableError(Exception):
    """Why a finding cannot be put to the test, in words."""


@dataclass(frozen=True)
class _Test:
    """A finding that fio can put to the test, with what the study knows of its settings and its device."""

    row: FindingRow
    cause: RuleCause
    setting: Setting
    preferred_bytes: int


def blamed_cause(finding: FindingRow, rules: Mapping[str, Rule]) -> RuleCause | None:
    """Return the cause that a mismatch names, if its rule blames a factor that fio can change alone."""
    rule = rules.get(finding["rule"])
    return rule.about.cause if rule is not None and finding["verdict"] == "mismatch" else None


def imitate_findings(
    findings: Sequence[FindingRow],
    rules: Mapping[str, Rule],
    connection: "duckdb.DuckDBPyConnection",
    devices: Mapping[str, Opening],
    seconds_per_finding: float,
) -> list[FindingRow]:
    """Return the findings (rows of `findings`, same order) with `confirmed` and `confirmation` filled in.

    Those that stage `remeasure` has judged keep what it said; where it only measured an effect again, what fio says
    comes after that. A refuted cause is told in the sentence.
    `rules` are those of the study, `connection` is the database that `detect` wrote. `devices` open and lock the device
    of a name, alone, for the time in which fio is at work on it; one where there is nothing to test is not waited for.
    What cannot be tested is `not_tested`, and `confirmation` says why; other verdicts than mismatch have no
    confirmation. Raises UserError when fio is missing.
    """
    rows = [row.copy() for row in findings]
    tests = []
    measured_again = []
    for row in rows:
        if row.get("confirmation") is not None:
            if row["confirmed"] is not None:
                continue  # tested on what-if devices, with the DBMS itself
            measured_again.append((row, row["confirmation"]))
        row |= {"confirmed": "not_tested", "confirmation": None}
        if (cause := blamed_cause(row, rules)) is not None:
            try:
                tests.append(_plan_test(row, cause, connection))
            except _UntestableError as error:
                row["confirmation"] = f"not tested: {error}"
        elif row["verdict"] == "mismatch":
            row["confirmation"] = f"Not tested with fio: {row['rule']} blames no single factor that fio could change."
    if tests:
        find_fio()
    for device in dict.fromkeys(test.row["device"] for test in tests):
        concerned = [test for test in tests if test.row["device"] == device]
        _imitate_on_device(concerned, devices.get(str(device)), seconds_per_finding)
    for row, confirmation in measured_again:
        row["confirmation"] = f"{confirmation} {row['confirmation']}"
    return rows


def _plan_test(row: FindingRow, cause: RuleCause, connection: "duckdb.DuckDBPyConnection") -> _Test:
    """Return the test of a finding; raises _UntestableError where the study does not know enough for one."""
    preferred = find_preferred_bytes(connection, row["device"])
    if preferred is None:
        raise _UntestableError(f"device {row['device']} has no profile")
    return _Test(row, cause, _read_setting(row, cause, connection), preferred)


def _imitate_on_device(tests: list[_Test], opening: Opening | None, seconds: float) -> None:
    """Fill in the rows of one device; one that cannot be used leaves them untested, with the reason."""
    try:
        if opening is None:
            raise UserError(f"device {tests[0].row['device']} is not available")
        with opening as (opened,), lay_out_file(opened, _FILE_BYTES) as file:
            for number, test in enumerate(tests, start=1):
                row = test.row
                label = f"imitate {row['device']} {number}/{len(tests)} {row['rule']} {name_value(row)}"
                try:
                    row.update(_run_test(test, file, opened.block, seconds, label))
                except FioRefusedError as error:
                    row["confirmation"] = f"not tested: {error}"
    except UserError as error:
        for test in tests:  # nothing was measured yet: both come before the first test
            test.row["confirmation"] = f"not tested: {error}"


def _run_test(test: _Test, file: FioFile, block: BlockDevice, seconds: float, label: str) -> FindingRow:
    row, cause, setting = test.row, test.cause, test.setting
    part = find_aligned_part(file, test.preferred_bytes, block)
    outcome = try_cause(cause.factor, setting, Stand(file, part, test.preferred_bytes, seconds, label))
    observation = (
        f"fio repeated the I/O of {setting.name} on {row['device']} ({setting.pattern.describe()}). {outcome.sentences}"
    )
    gain = {} if outcome.most_gain is None else _note_gain(row, outcome.most_gain)
    if outcome.is_borne_out is None:
        why = outcome.obstacle or "these intervals allow both answers, so they do not show whether that is the cause"
        return {"confirmed": "not_tested", "confirmation": f"{observation} But {why}.", **gain}
    if outcome.is_borne_out:
        return {"confirmed": "yes", "confirmation": f"{observation} So {cause.confirmed}.", **gain}
    return {
        "confirmed": "no",
        "confirmation": f"{observation} So {cause.refuted}.",
        "sentence": withdraw(row["sentence"], cause.refuted),
        **gain,
    }


def _note_gain(row: FindingRow, gain: float) -> FindingRow:
    """Return penalty and evidence of a finding by what fio measured, and no longer by the profile of the device."""
    evidence = json.loads(row.get("evidence") or "{}")
    evidence |= {"profile_gain": evidence.get("most_gain"), "most_gain": gain}
    return {"penalty": gain if gain > 1 else None, "evidence": json.dumps(evidence)}


def restate_gain(rule: Rule | None, finding: FindingRow, sentences: Sentences) -> FindingRow:
    """Return a finding whose sentence leaves out what its device would gain by its profile, where fio measured that."""
    evidence = json.loads(finding.get("evidence") or "{}")
    if rule is None or evidence.get("profile_gain") is None:
        return finding
    before = {name: value for name, value in evidence.items() if name != "profile_gain"}
    before["most_gain"] = evidence["profile_gain"]
    original, sentence = (sentences.say(rule, {**finding, "evidence": known}) for known in (before, evidence))
    return {**finding, "sentence": finding["sentence"].replace(original, sentence, 1)}


def _read_setting(row: FindingRow, cause: RuleCause, connection: "duckdb.DuckDBPyConnection") -> Setting:
    """Return what a finding compares; raises _UntestableError where the requests of its runs are not known."""
    slower, faster = find_sides(connection, row)
    pattern = read_pattern(connection, slower)
    if not slower.runs:
        raise _UntestableError(
            f"no successful run of the sweep has {slower.name}, compared with the default in its block"
        )
    if pattern is None:
        raise _UntestableError(
            "BPF monitored none of its runs without losing events, so their requests are unknown"
            if not slower.watched
            else f"the runs of {slower.name} did no I/O on the device"
        )
    busy_share = find_busy_share(connection, slower.watched)
    if busy_share is None:
        raise _UntestableError("no run recorded how long the device was busy")
    if row["knob"] is None:
        waited_share = json.loads(row.get("evidence") or "{}").get("waiting_share")
        return Setting(slower.name, pattern, "", None, 1.0, busy_share, waited_share=waited_share)
    if cause.factor == "write_size" and not pattern.write_sizes:
        raise _UntestableError("its runs wrote nothing to the device")
    if not faster.watched:
        raise _UntestableError(f"BPF watched no run of {faster.name} without losing events")
    if row["effect"] is None:
        raise _UntestableError("the finding has no effect that fio could show")
    other_pattern = read_pattern(connection, faster)
    if cause.factor == "reads" and (other_pattern is None or not other_pattern.read_sizes):
        raise _UntestableError(f"the runs of {faster.name} read nothing from the device")
    if not pattern.operations or (other_pattern is not None and not other_pattern.operations):
        raise _UntestableError("the number of operations behind the requests is unknown")
    measured = math.exp(abs(math.log1p(row["effect"])))
    clients, timed = find_clients(connection, row), is_timed(json.loads(row.get("evidence") or "{}"))
    return Setting(slower.name, pattern, faster.name, other_pattern, measured, busy_share, clients, is_timed=timed)

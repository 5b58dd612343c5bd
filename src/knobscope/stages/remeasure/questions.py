"""What is measured again: effects of a knob's value, and the time that a configuration takes.

Each once, however many findings ask for it.
"""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from knobscope.specs import Case, Dbms, Device, StudySpecs, Value, split_configuration, value_text
from knobscope.specs.models.rule import RuleSpec
from knobscope.stages.detect import find_excuse, is_own_knob
from knobscope.stages.plan import case_space
from knobscope.stages.remeasure.properties import MERGED, blamed_properties, factor_properties
from knobscope.stages.remeasure.shares import NOTHING, Amount, amount_of
from knobscope.tables import fetch_rows
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_value

if TYPE_CHECKING:
    import duckdb

#: Values that share the runs of their reference: between more of them some would lie too far from it.
TOGETHER = 4

#: Effects at most whose cause the runs leave open: they take as many runs as mismatches, and say less.
_MOST_OPEN = 4

#: What small flushed writes cost: effects that are blamed on one of these ask what merging them would gain.
OF_FLUSHES = {"flush", "write_unit"}

_CONFIGURATIONS = """
    SELECT any_value(v.configuration), any_value(s.configuration)
    FROM sweep_runs r
    JOIN plan v ON v.block_id = r.block_id AND v.config_id = r.config_id
    JOIN plan s ON s.block_id = r.block_id AND s.config_id = r.reference_id
    WHERE (r.dbms, r.device, r.workload, r.knob, r.value) = ($dbms, $device, $workload, $knob, $value)
"""
_EFFECT = """
    SELECT estimate, standard_error, degrees FROM effects
    WHERE metric = 'throughput_ops' AND standard_error IS NOT NULL
        AND (dbms, device, workload, knob, value) = ($dbms, $device, $workload, $knob, $value)
"""
_CLEAR = """
    SELECT dbms, device, workload, knob, value, '{}' AS evidence FROM effects
    WHERE metric = 'throughput_ops' AND q_value <= $fdr AND abs(exp(estimate) - 1) >= $min_effect
        AND (durability IS DISTINCT FROM true OR $any_risk)
    ORDER BY abs(estimate) DESC
"""
# The default configuration is its own reference.
_DEFAULT = """
    SELECT any_value(p.configuration), any_value(p.configuration)
    FROM sweep_runs r JOIN plan p ON p.block_id = r.block_id AND p.config_id = r.config_id
    WHERE r.is_sentinel AND (r.dbms, r.device, r.workload) = ($dbms, $device, $workload)
        AND r.knob IS NOT DISTINCT FROM $knob AND r.value IS NOT DISTINCT FROM $value
"""
_TIMES = """
    SELECT avg(1e6 / throughput_ops) FROM sweep_runs r
    WHERE status = 'ok' AND throughput_ops > 0 AND (dbms, device, workload) = ($dbms, $device, $workload)
        AND CASE WHEN $knob IS NULL THEN is_sentinel ELSE (knob, value) = ($knob, $value) END
        AND NOT EXISTS (FROM set_aside_runs s WHERE s.run_id = r.run_id)
        AND NOT EXISTS (
            FROM unusual_groups u WHERE u.block_id = r.block_id AND u.session IS NOT DISTINCT FROM r.session
        )
    GROUP BY block_id, session
"""


@dataclass(frozen=True, eq=False)
class Question:
    """An effect: a value of a knob against its reference value, on the device of a case.

    `other_device` is that of the other tier where a gap between tiers is to be explained, `remainder` the effect there
    (natural-log ratio of throughput). Of a level, it is the configuration itself that is asked about: what of the
    device makes up the time that it takes (or what it takes more than on `other_device`, `remainder` microseconds per
    operation). The default configuration has no knob. `findings` are positions in the table of findings.
    `swept` is the effect on this device in the sweep, a natural-log ratio of throughput; None where the effect (or gap)
    was not clear there, and of a level; less than `least` does not matter. One that is `followed` goes on to what-if
    devices once it shows again on its own device: to those without a property that is `blamed`, or to all where a study
    asks for them.
    A configuration of table `fastest` has a `risk`, no knob, and its changes as value.
    `clients` is the larger number of client threads of the two configurations. `dbms` tells how to write values.
    """

    case: Case
    knob: str | None
    value: str | None
    configuration: dict[str, Value]
    reference: dict[str, Value]
    findings: tuple[int, ...]
    other_device: str | None = None
    remainder: Amount = NOTHING
    is_level: bool = False
    swept: Amount | None = None
    least: float = 0.0
    followed: bool = True
    blamed: frozenset[str] = frozenset()
    risk: str | None = None
    clients: int = 1
    dbms: Dbms | None = None

    def name_setting(self, *, of_reference: bool = False) -> str:
        """Return the value that is asked about, or its reference value, with its knob: `fsync = off`."""
        if self.knob is None:
            return "the default configuration"
        reference = self.reference.get(self.knob) if of_reference and not self.is_level else None
        value = self.value if reference is None else value_text(reference)
        return f"{self.knob} = {format_value(self.dbms, self.knob, value)}"

    def asks(self, name: str) -> bool:
        """Whether it goes on to the what-if device of a property."""
        return not self.blamed or name in self.blamed or (name == MERGED and bool(self.blamed & OF_FLUSHES))

    @property
    def swept_effect(self) -> Amount | None:
        """The effect (or gap) in the sweep; None where it was not clear."""
        return None if self.swept is None else self.swept.minus(self.remainder)

    def with_sweep(self, own: Amount) -> Amount:
        """Return the effect (or gap) by an effect that was measured anew on this device, and by the sweep."""
        return (own if self.swept is None else own.together_with(self.swept)).minus(self.remainder)

    @property
    def is_default(self) -> bool:
        """Whether it is the reference configuration that is asked about."""
        return self.configuration == self.reference


def is_modelled(device: Device | None) -> bool:
    """Whether what-if devices of a device can be made."""
    return device is not None and device.model is not None


def ask_questions(
    findings: Sequence[FindingRow],
    specs: StudySpecs,
    connection: "duckdb.DuckDBPyConnection",
    most: int,
    what_if: int | None,
) -> list[Question]:
    """Return at most so many effects, the costliest mismatches first; findings that share one are put to one test.

    After them come effects whose cause the runs leave open, as far as what-if devices can tell it.

    The first `what_if` are followed to what-if devices, or slower ones; only there a level can be asked about. A gap
    between tiers is not followed to slower devices: ratios do not add up over what is waited for. Without a number
    (None), those on modelled devices are followed to the devices without what their rules blame.
    """
    least = math.log1p(specs.study.thresholds.min_effect)
    mismatches = [index for index, row in enumerate(findings) if row["verdict"] == "mismatch"]
    mismatches.sort(key=lambda index: -(findings[index]["penalty"] or 0))
    questions: dict[tuple[Any, ...], Question] = {}
    for index in [*mismatches, *_list_open(findings, specs, connection)]:
        row = findings[index]
        rule = specs.rules.get(row.get("rule", ""))
        explained = rule.about.explained if rule is not None else "effect"
        is_level, is_left_open = explained == "time", row["verdict"] != "mismatch"
        if explained == "nothing" or (row["knob"] is None and not is_level):
            continue
        device, other_device = _compared_levels(row) if is_level else _choose_device(row, connection)
        key = (row["dbms"], device, row["workload"], row["knob"], row["value"], other_device, is_level)
        blamed: frozenset[str] = frozenset()
        if what_if is None:
            if rule is not None:
                held_by = json.loads(row["evidence"] or "{}").get("held_by")
                blamed = list_blamed(rule.about, [str(held_by)], specs.devices.get(device))
            followed = bool(blamed)
        else:
            can_follow = is_modelled(specs.devices.get(device)) or other_device is None or is_level
            followed = can_follow and sum(entry.followed for entry in questions.values()) < what_if
        told = sum(findings[entry.findings[0]]["verdict"] == "mismatch" for entry in questions.values())
        room = min(most, told + _MOST_OPEN) if is_left_open else most
        if key in questions:
            earlier = questions[key]
            questions[key] = replace(
                earlier,
                findings=(*earlier.findings, index),
                followed=earlier.followed or bool(blamed),
                blamed=earlier.blamed | blamed,
            )
        elif device in specs.devices and (followed or not (is_level or is_left_open)) and len(questions) < room:
            question = _pose(row, (index,), device, other_device, specs, connection, is_level=is_level)
            if question is not None:
                questions[key] = replace(question, followed=followed, blamed=blamed, least=least)
    return list(questions.values())


def list_blamed(about: RuleSpec, held_by: Iterable[str], device: Device | None) -> frozenset[str]:
    """Return the properties of a device that a rule blames: always, and where its evidence has these `held_by`."""
    factors = [about.held_by[word] for word in held_by if word in about.held_by]
    return blamed_properties(about.cause, device).union(*(factor_properties(factor, device) for factor in factors))


def _list_open(findings: Sequence[FindingRow], specs: StudySpecs, connection: "duckdb.DuckDBPyConnection") -> list[int]:
    """Return positions of findings whose effect is clear and whose cause the runs leave open, the largest effect first.

    Only on a modelled device, whose what-if device without the property tells: whether the device is the cause, not
    whether time is spent for nothing.
    """
    parameters = {"fdr": specs.study.thresholds.fdr, "min_effect": specs.study.thresholds.min_effect, "any_risk": True}
    clear = {row[:5] for row in connection.execute(_CLEAR, parameters).fetchall()}

    def is_open(row: FindingRow) -> bool:
        rule = specs.rules.get(row.get("rule", ""))
        cause = rule.about.cause if rule is not None else None
        return (
            row["verdict"] == "insufficient"
            and (*Case.of(row), row["knob"], row["value"]) in clear
            and find_excuse(specs, row["dbms"], row["knob"]) is None
            and cause is not None
            and cause.expected == "gain"
            and bool(blamed_properties(cause, specs.devices.get(str(row["device"]))))
        )

    positions = [index for index, row in enumerate(findings) if is_open(row)]
    return sorted(positions, key=lambda index: -abs(math.log1p(findings[index].get("effect") or 0.0)))


def ask_headline(
    specs: StudySpecs, connection: "duckdb.DuckDBPyConnection", asked: Sequence[Question]
) -> list[Question]:
    """Return the largest clear effect, and that without a risk to committed data, as far as nobody asks about them yet.

    The head of the report is about them. They were picked for being large, so new pairs of runs say how large they are.
    """
    if not specs.study.remeasure.findings:
        return []
    thresholds = specs.study.thresholds
    known = {(q.case, q.knob, q.value) for q in asked if q.other_device is None and not q.is_level}
    questions: list[Question] = []
    for any_risk in (True, False):
        parameters = {"fdr": thresholds.fdr, "min_effect": thresholds.min_effect, "any_risk": any_risk}
        rows = cast("list[FindingRow]", fetch_rows(connection.execute(_CLEAR, parameters)))
        # As in the head of the report.
        of_knobs = (
            row for row in rows if row["device"] in specs.devices and is_own_knob(specs, row["dbms"], str(row["knob"]))
        )
        for row in itertools.islice(of_knobs, 1):
            question = _pose(row, (), str(row["device"]), None, specs, connection, is_level=False)
            if question is None or (question.case, question.knob, question.value) in known:
                continue
            known.add((question.case, question.knob, question.value))
            questions.append(replace(question, followed=False, least=math.log1p(thresholds.min_effect)))
    return questions


def ask_fastest(specs: StudySpecs, connection: "duckdb.DuckDBPyConnection") -> list[Question]:
    """Return the configurations of table `fastest`, to be compared with the default of their case."""
    query = "SELECT dbms, device, workload, risk, changes, configuration FROM fastest ORDER BY ALL"
    return [
        Question(
            case=(case := Case(dbms, device, workload)),
            knob=None,
            value=changes,
            configuration=json.loads(configuration),
            reference=dict(case_space(specs, case).default),
            findings=(),
            followed=False,
            risk=risk,
        )
        for dbms, device, workload, risk, changes, configuration in connection.execute(query).fetchall()
    ]


def _compared_levels(row: FindingRow) -> tuple[str, str | None]:
    """Return the device of a finding, and that of the lower tier on which the same configuration is faster, if any."""
    return str(row["device"]), json.loads(row["evidence"] or "{}").get("lower_device")


def _choose_device(row: FindingRow, connection: "duckdb.DuckDBPyConnection") -> tuple[str, str | None]:
    """Return the device on which a finding is tested, and that of the other tier, if it compares two.

    Of two, it is the one with the larger effect: taking costs away can make an effect smaller, not larger.
    """
    evidence = json.loads(row["evidence"] or "{}")
    lower, higher = evidence.get("lower_device"), evidence.get("higher_device")
    if not lower or not higher:
        return str(row["device"]), None
    sizes = {device: _read_effect(row, device, connection) for device in (lower, higher)}
    larger = max(sizes, key=lambda device: abs(effect.mean) if (effect := sizes[device]) is not None else 0.0)
    return larger, lower if larger == higher else higher


def _read_effect(row: FindingRow, device: str, connection: "duckdb.DuckDBPyConnection") -> Amount | None:
    effect = connection.execute(_EFFECT, _asked(row, device)).fetchone()
    return Amount(*map(float, effect)) if effect else None


def _read_time(row: FindingRow, device: str, connection: "duckdb.DuckDBPyConnection") -> Amount | None:
    """Return the time per operation of a finding's configuration, microseconds; None with fewer than two blocks."""
    times = [time for (time,) in connection.execute(_TIMES, _asked(row, device)).fetchall()]
    return amount_of(times) if len(times) > 1 else None


def _asked(row: FindingRow, device: str) -> dict[str, str | None]:
    names = {"dbms": row["dbms"], "workload": row["workload"], "knob": row["knob"], "value": row["value"]}
    return {**names, "device": device}


def _pose(
    row: FindingRow,
    findings: tuple[int, ...],
    device: str,
    other_device: str | None,
    specs: StudySpecs,
    connection: "duckdb.DuckDBPyConnection",
    *,
    is_level: bool,
) -> Question | None:
    query = _DEFAULT if row["knob"] is None else _CONFIGURATIONS
    changed, reference = connection.execute(query, _asked(row, device)).fetchone() or (None, None)
    read_remainder = _read_time if is_level else _read_effect
    remainder = NOTHING if other_device is None else read_remainder(row, other_device, connection)
    if changed is None or remainder is None:
        return None
    swept = None if is_level else _read_effect(row, device, connection)
    configuration, usual = json.loads(changed), json.loads(reference)
    workload = specs.workloads[row["workload"]]
    return Question(
        case=Case(row["dbms"], device, row["workload"]),
        knob=row["knob"],
        value=row["value"],
        configuration=configuration,
        reference=usual,
        findings=findings,
        other_device=other_device,
        remainder=remainder,
        is_level=is_level,
        swept=swept if swept is not None and swept.minus(remainder).is_clear() else None,
        clients=max(split_configuration(workload, values)[0].threads for values in (configuration, usual)),
        dbms=specs.dbms[row["dbms"]],
    )


def what_if_number(specs: StudySpecs) -> int | None:
    """Return how many effects a study follows to other devices; None: those of which rules blame a device's property.

    A budget was divided up without these, so that only a number takes anything from it.
    """
    what_if, budget = specs.study.remeasure.what_if, specs.study.budget
    return 0 if what_if is None and (budget.runs, budget.hours) != (None, None) else what_if

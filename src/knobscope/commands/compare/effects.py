"""Effects of knobs in both studies: does a value do the same in B as in A?

An effect is a ratio within one study, so workloads and machines of different speed can be compared. It is against the
default configuration of its own study; where the default of the knob differs, both effects are taken against a value
that both studies measured. The difference of two such natural-log ratios is that of independent estimates (Welch).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import computed_field

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import METRICS, StudyTables
from knobscope.specs import Case
from knobscope.statistics.independent import join_errors
from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability
from knobscope.study_data.study import Row
from knobscope.text.formats import describe_beside

Verdict = Literal["differs", "no_difference", "unknown"]

#: A knob's value as it can be looked up: the number that it is, or its text, with the unit.
Key = tuple[str | float, str | None]


@dataclass(frozen=True)
class Limits:
    """What counts as a clear difference: false discovery rate, and smallest relative change."""

    fdr: float
    min_effect: float


@dataclass(frozen=True)
class Estimate:
    """An effect in one study, natural-log ratio to the reference value; no error: it cannot be told how sure it is."""

    estimate: float | None
    error: float | None
    degrees: float
    reason: str = ""  # why there is no error

    @computed_field  # type: ignore[prop-decorator]
    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        if self.estimate is None or self.error is None:
            return None
        low, high = t_interval(np.array([self.estimate]), np.array([self.error]), np.array([self.degrees]))
        return float(low[0]), float(high[0])


@dataclass(frozen=True)
class EffectPair:
    """The effect of one value in both studies; `estimate` and its interval: natural logarithm of the ratio B to A."""

    pair: CasePair
    metric: str
    knob: str
    value: str
    unit: str | None
    reference: str  # what both effects are against
    durability: bool
    a: Estimate
    b: Estimate
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    verdict: Verdict = "unknown"
    reason: str = ""  # why it cannot be told

    @property
    def bound(self) -> float | None:
        """The largest difference that the interval leaves, as a natural-log ratio without direction."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class OneSided:
    """A value that one study alone measured."""

    letter: str
    knob: str
    value: str
    unit: str | None


@dataclass(frozen=True)
class OtherDefault:
    """A knob whose default differs; `reference` is what its effects are against instead, None: there is no such."""

    knob: str
    a: str
    b: str
    unit: str | None
    reference: str | None


@dataclass(frozen=True)
class PairedEffects:
    """All effects of a pair of cases."""

    effects: list[EffectPair]
    one_sided: list[OneSided]
    other_defaults: list[OtherDefault]


def pair_effects(a: StudyTables, b: StudyTables, pair: CasePair) -> PairedEffects:
    """Return the effects of a pair of cases, not judged yet, with what only one study measured."""
    effects: list[EffectPair] = []
    one_sided: list[OneSided] = []
    other_defaults: list[OtherDefault] = []
    for metric in METRICS:
        knobs = [_by_knob(study, case, metric) for study, case in ((a, pair.a), (b, pair.b))]
        for knob in sorted({*knobs[0], *knobs[1]}):
            left, right = (side.get(knob, {}) for side in knobs)
            knob_effects, other_default = _pair_knob(pair, metric, knob, left, right)
            effects += knob_effects
            if metric == METRICS[0]:
                other_defaults += [other_default] if other_default else []
                one_sided += _one_sided(knob, left, right)
    return PairedEffects(effects, one_sided, other_defaults)


def judge(effects: Sequence[EffectPair], limits: Limits) -> list[EffectPair]:
    """Return the effects with difference, interval, q value and verdict, sorted: clear ones first, unknown ones last.

    The q values are over all that are compared on a metric.
    """
    judged: list[EffectPair] = []
    for metric in METRICS:
        judged += _judge_metric([effect for effect in effects if effect.metric == metric], limits)
    return sorted(judged, key=_order)


def _by_knob(study: StudyTables, case: Case, metric: str) -> dict[str, dict[Key, Row]]:
    """Return effects by knob and value; a value measured with another change counts as a knob named after both."""
    by_knob: dict[str, dict[Key, Row]] = {}
    for row in study.of_case("effects", case):
        if row["metric"] == metric:
            knob = row["knob"] + describe_beside(None, json.loads(row["beside"] or "{}"))
            by_knob.setdefault(knob, {})[_key(row["value"], row["unit"])] = {**row, "knob": knob}
    return by_knob


def _key(value: str | None, unit: str | None) -> Key:
    try:
        return float(value or ""), unit
    except ValueError:
        return value or "", unit


def _baseline(rows: Mapping[Key, Row]) -> str | None:
    return next((row["baseline"] for row in rows.values() if row["baseline"] is not None), None)


def _pair_knob(
    pair: CasePair, metric: str, knob: str, left: Mapping[Key, Row], right: Mapping[Key, Row]
) -> tuple[list[EffectPair], OtherDefault | None]:
    """Return the values of a knob that both studies can tell of against one reference value."""
    if not left or not right:
        return [], None
    unit = next(iter(left.values()))["unit"]
    defaults = [_baseline(rows) for rows in (left, right)]
    keys = [None if default is None else _key(default, unit) for default in defaults]
    if defaults[0] is None or defaults[1] is None or keys[0] is None or keys[1] is None:
        common = [key for key in left if key in right]
        silent = " and ".join(letter for letter, default in zip("AB", defaults, strict=True) if default is None)
        reason = f"the default of {knob} is not recorded in {silent}"
        return [_untold(pair, metric, left[key], reason) for key in common], None
    if keys[0] == keys[1]:
        sides = [_against(rows, keys[0], keys[0]) for rows in (left, right)]
        return list(_values(pair, metric, left, right, sides, defaults[0])), None
    reference = _choose_reference(left, right, keys[0], keys[1])
    reference_text = None if reference is None else _text_of(reference, left, right, defaults[0], defaults[1], keys[0])
    other_default = OtherDefault(knob, defaults[0], defaults[1], unit, reference_text)
    if reference is None or reference_text is None:
        reason = "the default differs, and no other value was measured in both studies to compare with"
        return [_untold(pair, metric, left[key], reason) for key in left if key in right], other_default
    sides = [_against(rows, reference, own) for rows, own in zip((left, right), (keys[0], keys[1]), strict=True)]
    return list(_values(pair, metric, left, right, sides, reference_text)), other_default


def _choose_reference(left: Mapping[Key, Row], right: Mapping[Key, Row], a: Key, b: Key) -> Key | None:
    """Return a value that both studies measured, together with at least one more: a default if that is one."""
    common = [
        key for key in {**dict.fromkeys((a, b)), **dict.fromkeys(left)} if _has(left, key, a) and _has(right, key, b)
    ]
    return common[0] if len(common) > 1 else None


def _has(rows: Mapping[Key, Row], key: Key, default: Key) -> bool:
    return key == default or (key in rows and _read(rows[key]).error is not None)


def _text_of(key: Key, left: Mapping[Key, Row], right: Mapping[Key, Row], a: str, b: str, default: Key) -> str:
    if key in left:
        return str(left[key]["value"])
    return a if key == default else str(right[key]["value"]) if key in right else b


def _against(rows: Mapping[Key, Row], reference: Key, default: Key) -> dict[Key, Estimate]:
    """Return a study's effects against a value; the default itself is one, with an effect of 0 against itself.

    Both effects, of the value and of the reference, share the runs of the default configuration. Their errors are added
    as if they did not, which makes the interval a little too wide and never too narrow.
    """
    effects = {key: _read(row) for key, row in rows.items()}
    effects[default] = Estimate(0.0, 0.0, 1.0)
    if reference == default:
        return {key: effect for key, effect in effects.items() if key != default}
    base = effects[reference]
    return {key: _minus(effect, base) for key, effect in effects.items() if key != reference}


def _read(row: Row) -> Estimate:
    if row["is_gone"]:
        return Estimate(row["estimate"], None, 1.0, "it did not reproduce in new runs")
    if row["standard_error"] is not None and row["estimate"] is not None:
        return Estimate(row["estimate"], row["standard_error"], max(row["degrees"] or 1.0, 1.0))
    if not row["runs"]:
        reason = "no run with it succeeded"
    elif (row["blocks"] or 0) < 2:
        reason = "it was measured in one block only"
    elif row["estimate"] is None:
        reason = "there are too few runs for the model"
    else:
        reason = "there are too few runs to know their noise"
    return Estimate(row["estimate"], None, 1.0, reason)


def _minus(effect: Estimate, base: Estimate) -> Estimate:
    if effect.estimate is None or base.estimate is None or effect.error is None or base.error is None:
        return replace(effect, estimate=None, error=None, reason=effect.reason or base.reason)
    error, degrees = join_errors(np.array([[effect.error], [base.error]]), np.array([[effect.degrees], [base.degrees]]))
    return Estimate(effect.estimate - base.estimate, float(error[0]), float(degrees[0]))


def _values(
    pair: CasePair,
    metric: str,
    left: Mapping[Key, Row],
    right: Mapping[Key, Row],
    sides: Sequence[Mapping[Key, Estimate]],
    reference: str,
) -> Iterator[EffectPair]:
    for key in sides[0]:
        if key in sides[1]:
            row = left.get(key) or right[key]
            effect_a, effect_b = sides[0][key], sides[1][key]
            silent = [
                f"in {letter} {side.reason}"
                for letter, side in zip("AB", (effect_a, effect_b), strict=True)
                if side.reason
            ]
            risky = any(bool(rows[key]["durability"]) for rows in (left, right) if key in rows)
            yield EffectPair(
                pair, metric, row["knob"], row["value"], row["unit"], reference, risky, effect_a, effect_b,
                reason=" and ".join(silent),
            )  # fmt: skip


def _untold(pair: CasePair, metric: str, row: Row, reason: str) -> EffectPair:
    nothing = Estimate(None, None, 1.0)
    return EffectPair(
        pair,
        metric,
        row["knob"],
        row["value"],
        row["unit"],
        "",
        bool(row["durability"]),
        nothing,
        nothing,
        reason=reason,
    )


def _one_sided(knob: str, left: Mapping[Key, Row], right: Mapping[Key, Row]) -> Iterator[OneSided]:
    """Yield values that one study measured, and that are not the default of the other."""
    for letter, rows, other_rows in (("A", left, right), ("B", right, left)):
        unit = next(iter(rows.values()))["unit"] if rows else None
        excluded_keys = {*other_rows, _key(_baseline(other_rows), unit)} if other_rows else set()
        yield from (
            OneSided(letter, knob, row["value"], row["unit"]) for key, row in rows.items() if key not in excluded_keys
        )


def _judge_metric(effects: Sequence[EffectPair], limits: Limits) -> Iterator[EffectPair]:
    errors = np.array([[_number(side.error) for side in (effect.a, effect.b)] for effect in effects]).reshape(-1, 2).T
    degrees = np.array([[effect.a.degrees, effect.b.degrees] for effect in effects]).reshape(-1, 2).T
    estimates = np.array([_number(effect.b.estimate) - _number(effect.a.estimate) for effect in effects])
    error, joint = join_errors(errors, degrees)
    low, high = t_interval(estimates, error, joint)
    p_values = t_probability(estimates, error, joint)
    q_values = adjust_for_fdr(p_values)
    for number, effect in enumerate(effects):
        if not np.isfinite(q_values[number]):
            yield effect
            continue
        clear = q_values[number] <= limits.fdr and abs(math.expm1(min(estimates[number], 50))) >= limits.min_effect
        yield replace(
            effect,
            estimate=float(estimates[number]),
            low=float(low[number]),
            high=float(high[number]),
            p_value=float(p_values[number]),
            q_value=float(q_values[number]),
            verdict="differs" if clear else "no_difference",
        )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _order(effect: EffectPair) -> tuple[int, int, float, str, str]:
    rank = ("differs", "no_difference", "unknown").index(effect.verdict)
    size = -abs(effect.estimate or 0.0) if effect.verdict == "differs" else effect.bound or 0.0
    return METRICS.index(effect.metric), rank, size, effect.knob, effect.value

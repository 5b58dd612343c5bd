"""`all` in a study: the whole catalogue of a DBMS becomes knobs like those that a study names.

So plans, rankings and effects need to know nothing of it. What is left out is kept with the reason, for the report.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from knobscope.specs.checks.load import is_unwritable
from knobscope.specs.completing.catalogue import KnobCatalogue, take_named_knobs
from knobscope.specs.completing.exclusions import Exclusion, find_reason
from knobscope.specs.models.choice import AllKnobs, KnobGroup
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.programs import is_between
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import Value
from knobscope.specs.reading.source import Document, SpecProblem, show_path

#: From here on the ends of a range are no values that somebody would try, and the range is taken around the default.
_WIDE = 1000
#: How far such a range reaches from the default, as a factor: as far as where a catalogue tells no range (`reach`). A
#: screening run sets all knobs at once, so that the farther values reach, the fewer configurations run at all.
_REACH = 10


@dataclass(frozen=True)
class WholeDbms:
    """A study in which `all` of a DBMS has become knobs, and what has not: knob -> reason."""

    study: Study
    left_out: dict[str, str] = field(default_factory=dict)
    problems: list[SpecProblem] = field(default_factory=list)


def spread_all(
    document: Document,
    study: Study,
    dbms: Dbms,
    catalogue: KnobCatalogue | None,
    exclusions: Sequence[Exclusion],
    workloads: Collection[Workload],
) -> WholeDbms:
    """Return the study with the knobs that `all` of a DBMS stands for; as it was when it does not ask for `all`.

    What the study says of a knob by name stays as it is.
    """
    whole = study.whole_of(dbms.name)
    if whole is None:
        return WholeDbms(study)
    if catalogue is None:  # then all knobs are those of the spec
        catalogue = KnobCatalogue(dbms=dbms.name, version="", asked="", left_out={}, knobs={})
    elif not exclusions:
        folder = show_path(document.path.absolute().parent.parent / "exclusions")
        found, expected = (
            f"all knobs of {dbms.name} without exclusions",
            f"a file in {folder} that names dangerous ones",
        )
        return WholeDbms(study, problems=[document.problem(("knobs", dbms.name), found, expected)])
    full = take_named_knobs(dbms, catalogue, catalogue.knobs)[0]
    every = {**catalogue.knobs, **{name: _categorise(name, knob, catalogue) for name, knob in full.knobs.items()}}
    named = study.knobs[dbms.name]
    wanted = [name for name in (*full.knobs, *catalogue.knobs) if whole.wants(name, every[name])]
    unnamed = [name for name in dict.fromkeys(wanted) if name not in named]
    reasons = {name: _explain_absence(name, dbms, full, catalogue, exclusions, workloads) for name in unnamed}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    group = KnobGroup({**named, **{name: None for name in unnamed if name not in left_out}}, None)
    problems = list(_check_filters(document, dbms, whole, every))
    if not group and not problems:
        expected = "filters that some knob passes"
        problems.append(document.problem(("knobs", dbms.name), "no knob that is left", expected))
    spread = study.model_copy(update={"knobs": {**study.knobs, dbms.name: group}})
    return WholeDbms(spread, dict(sorted(left_out.items())), problems)


def _categorise(name: str, knob: Knob, catalogue: KnobCatalogue) -> Knob:
    """Return a knob of the spec with the category that the DBMS puts it in."""
    entry = catalogue.knobs.get(name)
    return knob if knob.category or entry is None else knob.model_copy(update={"category": entry.category})


def _explain_absence(
    name: str,
    dbms: Dbms,
    full: Dbms,
    catalogue: KnobCatalogue,
    exclusions: Sequence[Exclusion],
    workloads: Collection[Workload],
) -> str | None:
    """Say why `all` leaves a knob out, None when it does not; `full` is the DBMS with all knobs that can be written."""
    if name not in dbms.knobs and (reason := find_reason(exclusions, dbms, name)) is not None:
        return reason
    if name not in full.knobs:
        return f"{dbms.name}.yaml takes it away, or does not say how a knob of its kind is written"
    knob = full.knobs[name]
    if not knob.readable:
        return "the DBMS cannot be asked for its value in force"
    if catalogue.version and not is_between(catalogue.version, knob.since, knob.until):
        return f"{dbms.name} {catalogue.version}, of which the catalogue is, does not have it"
    unable = [workload.generator for workload in workloads if is_unwritable(full, name, workload)]
    return f"{unable[0]} cannot pass it on" if unable else None


def _check_filters(document: Document, dbms: Dbms, whole: AllKnobs, every: Mapping[str, Knob]) -> Iterator[SpecProblem]:
    """Yield what filters ask for and no knob has: they would leave out or let in what nobody meant."""
    mechanisms = sorted({knob.mechanism for knob in every.values()})
    for index, mechanism in enumerate(whole.mechanism or []):
        if mechanism not in mechanisms:
            location = ("knobs", dbms.name, "all", "mechanism", index)
            expected = f"one that its knobs have: {mechanisms}"
            yield document.problem(location, f"{mechanism!r}, which no knob of {dbms.name} has", expected)
    categories = sorted({knob.category for knob in every.values() if knob.category is not None})
    one_category = f"one that its knobs have: {categories}" if categories else f"no category: {dbms.name} has none"
    one_name = f"the name of one of its {len(every)} knobs, or a part"
    for key, patterns, texts, expected in (
        ("category", whole.category or [], categories, one_category),
        ("names", whole.names or [], every, one_name),
        ("except", whole.except_, every, one_name),
    ):
        for index, pattern in enumerate(patterns):
            if not any(fnmatchcase(text, pattern) for text in texts):
                yield document.problem(("knobs", dbms.name, "all", key, index), repr(pattern), expected)


def spread_levels(study: Study, dbms: Dbms, named: Collection[str], described: Collection[str]) -> Dbms:
    """Return the DBMS with the wide ranges of what `all` took from its catalogue brought near their usual values.

    Without that, a number from 0 to 2^63 would be tried at four values of which none makes sense. `named` are knobs
    that the study names, `described` those of the spec: both keep their ranges.
    """
    usual = study.baseline.get(dbms.name, {})
    catalogue_knobs = [name for name in study.knobs.get(dbms.name, {}) if name not in named and name not in described]
    nearer = {
        name: _bring_near(dbms.knobs[name], usual.get(name, dbms.knobs[name].default)) for name in catalogue_knobs
    }
    return dbms.model_copy(update={"knobs": {**dbms.knobs, **nearer}})


def _bring_near(knob: Knob, usual: Value) -> Knob:
    """Return a number whose range is wide with one of an order of magnitude on either side of its usual value.

    Where that value has no order of magnitude (0, or -1 for automatic), the range is that of 1 to 1000, as far as the
    knob allows it.
    """
    if knob.range is None or isinstance(usual, str):
        return knob
    low, high = knob.range
    if high - low <= _WIDE and (low <= 0 or high / low <= _WIDE):
        return knob
    is_within = usual > 0 and low <= usual <= high
    start = max(low, usual / _REACH if is_within else 1)
    end = min(high, usual * _REACH if is_within else start * _WIDE)
    whole_number = knob.type == "integer"
    start, end = (math.ceil(start), math.floor(end)) if whole_number else (_shorten(start), _shorten(end))
    if start >= end:
        return knob
    special = knob.special if start <= usual <= end else {**knob.special, usual: "default"}
    return knob.model_copy(update={"range": [start, end], "scale": "log", "special": special})


def _shorten(number: float) -> float:
    """Return a real number with as many digits as a catalogue has."""
    return float(f"{number:.6g}")

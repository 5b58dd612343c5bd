"""What differs between the set-ups of two studies: programs, machine, devices, workloads, default configurations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.specs import Case
from knobscope.study_data.study import Row
from knobscope.text.formats import UNKNOWN, format_micros, format_number, format_rate, format_size

#: Measured figures of a device count as equal when they differ by less than this share: a choice of ours.
_MEASURED_ALIKE = 0.1
#: Ends of names of facts, and beginnings, by which facts of one kind are known.
BY_FIO = " (fio)"
DEFAULT_OF = "default of "
OF_DEVICE, OF_WORKLOAD = "device's", "workload's"
#: Columns of `device_profile` that are compared -> words and format.
_FIGURES: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "write_unit_bytes": ("write unit", format_size),
    "flush_p50_us": ("fdatasync after a 4 KiB write", format_micros),
    "random_read_iops_qd1": ("random 4 KiB reads, one at a time", lambda rate: format_rate(rate, "/s")),
    "random_read_iops_best": ("random 4 KiB reads, at best", lambda rate: format_rate(rate, "/s")),
    "saturating_depth": ("queue depth that saturates", format_number),
    "random_sequential_ratio": ("random to sequential reads", format_number),
}
#: Fields of a workload that decide what an operation is: throughput of others is no throughput of the same thing.
_ASKED = ("generator", "records", "threads")
_PARAMETERS = "parameters."


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same in both studies; `subject` is what it is a fact of."""

    what: str
    subject: str
    a: str
    b: str


@dataclass(frozen=True)
class Setup:
    """Facts of both studies: those that differ, the names of equal ones, and of those that one database lacks."""

    differences: list[Difference]
    equal: list[str]
    unknown: list[str]


@dataclass(frozen=True)
class Workloads:
    """Whether two workloads ask the same, so that throughput can be compared; None: it cannot be told."""

    comparable: bool | None
    reason: str


@dataclass(frozen=True)
class _Fact:
    what: str
    subject: str
    a: str | None  # as it is shown; None: not known
    b: str | None
    equal: bool


def compare_setups(a: StudyTables, b: StudyTables, pairs: Sequence[CasePair]) -> Setup:
    """Return what is known of both studies, fact by fact; without pairs only what is true of a whole study."""
    facts = list(dict.fromkeys(_facts(a, b, pairs)))
    differences = [
        Difference(fact.what, fact.subject, fact.a, fact.b)
        for fact in facts
        if fact.a is not None and fact.b is not None and not fact.equal
    ]
    differing = {difference.what for difference in differences}
    equal = [fact.what for fact in facts if fact.equal and fact.what not in differing]
    unknown = [fact.what for fact in facts if (fact.a is None) != (fact.b is None)]
    return Setup(differences, list(dict.fromkeys(equal)), list(dict.fromkeys(unknown)))


def compare_workloads(a: StudyTables, b: StudyTables, pair: CasePair) -> Workloads:
    """Return whether the two workloads of a pair ask the same of the DBMS."""
    fields = [_setup_of(study, "workload", case.workload) for study, case in ((a, pair.a), (b, pair.b))]
    if not all(fields):
        threads = [
            {row["threads"] for row in study.of_case("cases", case)} - {None}
            for study, case in ((a, pair.a), (b, pair.b))
        ]
        if all(threads) and threads[0] != threads[1]:
            return Workloads(False, "the number of threads differs")
        if pair.a.workload != pair.b.workload:
            return Workloads(False, "the workloads have other names, and their parameters are not recorded in both")
        silent = " and ".join(study.letter for study, side in zip((a, b), fields, strict=True) if not side)
        return Workloads(None, f"the database of {silent} does not record the parameters of the workload")
    names = sorted({name for side in fields for name in side if name in _ASKED or name.startswith(_PARAMETERS)})
    differing = [name for name in names if fields[0].get(name) != fields[1].get(name)]
    if differing:
        return Workloads(False, f"the workloads differ in {', '.join(map(_plain, differing))}")
    return Workloads(True, "")


def default_values(study: StudyTables, case: Case) -> dict[str, str]:
    """Return the default configuration of a case: knob -> value; empty where no plan tells it."""
    sentinels = [run["config_id"] for run in study.of_case("runs", case) if run["is_sentinel"]]
    last = sentinels[-1] if sentinels else None
    return {
        row["knob"]: row["value"]
        for row in study.rows["knob_values"]
        if row["config_id"] == last and row["dbms"] == case.dbms
    }


def _facts(a: StudyTables, b: StudyTables, pairs: Sequence[CasePair]) -> Iterator[_Fact]:
    yield _fact(
        "knobscope version", "", *(_setup_of(study, "knobscope", "knobscope").get("version") for study in (a, b))
    )
    yield from _machines(a, b)
    for name in ("monitor", "watch", "trace", "thresholds.fdr", "thresholds.min_effect"):
        yield _fact(_plain(name), "", *(_setup_of(study, "study", None).get(name) for study in (a, b)))
    yield _fact("load generator on", "", *map(_client_host, (a, b)))
    for pair in pairs:
        yield from _of_dbms(a, b, pair)
        yield from _of_device(a, b, pair)
        subject = _subject(pair.a.workload, pair.b.workload)
        yield _fact("workload", subject, pair.a.workload, pair.b.workload)
        sides = [_setup_of(study, "workload", case.workload) for study, case in ((a, pair.a), (b, pair.b))]
        yield from _fields(sides, subject, OF_WORKLOAD)
        yield from _defaults(a, b, pair)


def _fact(name: str, subject: str, a: str | None, b: str | None) -> _Fact:
    return _Fact(name, subject, a, b, a is not None and a == b)


def _plain(field: str) -> str:
    """Return the name of a field as people say it."""
    plain_names = {
        "monitor": "requested monitor",
        "watch": "what else was watched",
        "trace": "tracing",
        "thresholds.fdr": "false discovery rate",
        "thresholds.min_effect": "smallest effect that counts",
    }
    return plain_names.get(field, field.removeprefix(_PARAMETERS))


def _subject(a: str, b: str) -> str:
    return a if a == b else f"{a}, {b}"


def _machines(a: StudyTables, b: StudyTables) -> Iterator[_Fact]:
    """Yield kernel, processor and memory, which are one text in table `runs`."""
    for name, part in (("kernel", 0), ("processor", 1), ("memory", 2)):
        yield _fact(name, "", *(_distinct(_split(run["machine"])[part] for run in s.rows["runs"]) for s in (a, b)))


def _split(machine: str | None) -> tuple[str | None, str | None, str | None]:
    if not machine:
        return None, None, None
    kernel, _, remainder = machine.partition(", ")
    processor, _, memory = remainder.rpartition(", ")
    return (kernel, processor, memory) if memory.endswith("of memory") else (kernel, remainder, None)


def _distinct(values: Iterator[str | None]) -> str | None:
    return ", ".join(sorted({value for value in values if value})) or None


def _setup_of(study: StudyTables, part: str, name: str | None) -> dict[str, str]:
    """Return what table `setup` says of a part; nothing of an imported study's specs, which are made up."""
    if study.is_imported and part != "study":
        return {}
    rows = study.rows["setup"]
    return {row["property"]: row["value"] for row in rows if row["part"] == part and name in (row["name"], None)}


def _client_host(study: StudyTables) -> str | None:
    """Return the machine that the load came from; None where the set-up is not recorded."""
    fields = _setup_of(study, "study", None)
    return fields.get("client.host", "the DBMS's machine") if fields else None


def _of_dbms(a: StudyTables, b: StudyTables, pair: CasePair) -> Iterator[_Fact]:
    subject = _subject(pair.a.dbms, pair.b.dbms)
    sides = ((a, pair.a), (b, pair.b))
    yield _fact("DBMS", subject, pair.a.dbms, pair.b.dbms)
    versions = (_distinct(run["dbms_version"] for run in study.of_case("runs", case)) for study, case in sides)
    yield _fact("DBMS version", subject, *versions)
    digests = (_setup_of(study, "dbms", case.dbms).get("digest") for study, case in sides)
    yield _fact("digest of the DBMS's spec", subject, *digests)
    monitors = (_distinct(run["monitor"] for run in study.of_case("runs", case)) for study, case in sides)
    yield _fact("monitor in use", subject, *monitors)


def _of_device(a: StudyTables, b: StudyTables, pair: CasePair) -> Iterator[_Fact]:
    subject = _subject(pair.a.device, pair.b.device)
    yield _fact("device", subject, pair.a.device, pair.b.device)
    yield _fact("tier", subject, *(_distinct(run["tier"] for run in study.of_case("runs", case))
                                   for study, case in ((a, pair.a), (b, pair.b))))  # fmt: skip
    left, right = (
        next((row for row in study.rows["device_profile"] if row["device"] == case.device), {})
        for study, case in ((a, pair.a), (b, pair.b))
    )
    yield _fact("file system", subject, left.get("filesystem"), right.get("filesystem"))
    if left and right:
        yield from (_measured(column, subject, left, right) for column in _FIGURES)
    names = [side.get("block_device") for side in (left, right)]
    if not all(name and name.startswith("loop") for name in names):  # which number a loop device gets is chance
        yield _fact("block device", subject, *names)
    sides = [_setup_of(study, "device", case.device) for study, case in ((a, pair.a), (b, pair.b))]
    yield from (fact for fact in _fields(sides, subject, OF_DEVICE) if not fact.what.endswith(" tier"))


def _measured(column: str, subject: str, left: Row, right: Row) -> _Fact:
    """Return a measured figure of two devices; a missing one is shown, since `none was found` is a finding, too."""
    name, show = _FIGURES[column]
    a, b = left[column], right[column]
    alike = a == b or (a is not None and b is not None and abs(a - b) < _MEASURED_ALIKE * max(abs(a), abs(b)))
    shown = [UNKNOWN if figure is None else show(figure) for figure in (a, b)]
    return _Fact(f"{name}{BY_FIO}", subject, shown[0], shown[1], alike)


def _fields(specs: Sequence[dict[str, str]], subject: str, prefix: str) -> Iterator[_Fact]:
    """Yield the fields of two specs that the databases record; a field that only one of them states is a difference."""
    groups = [{name: name.split(".")[0] for name in side} for side in specs]
    for group in dict.fromkeys((*groups[0].values(), *groups[1].values())):
        names = list(dict.fromkeys(name for side in groups for name, head in side.items() if head == group))
        if all(specs) and any(group not in side.values() for side in groups) and len(names) > 1:
            sides = (f"set ({len(names)} fields)" if group in side.values() else "not set" for side in groups)
            yield _fact(f"{prefix} {group}", subject, *sides)
            continue
        for name in names:
            values = [side.get(name, "not set") if side else None for side in specs]
            yield _fact(f"{prefix} {_plain(name)}", subject, *values)


def _defaults(a: StudyTables, b: StudyTables, pair: CasePair) -> Iterator[_Fact]:
    """Yield the values of the default configurations, knob by knob; of knobs that only one study knows, too."""
    sides = [default_values(study, case) for study, case in ((a, pair.a), (b, pair.b))]
    if not all(sides):
        return
    subject = _subject(pair.a.dbms, pair.b.dbms)
    for knob in dict.fromkeys((*sides[0], *sides[1])):
        if knob in sides[0] and knob in sides[1]:
            yield _fact(f"{DEFAULT_OF}{knob}", subject, sides[0][knob], sides[1][knob])

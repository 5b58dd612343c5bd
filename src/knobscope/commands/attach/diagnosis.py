"""Everything that attach says of one window, ready to be shown as text, JSON or a page."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

from knobscope.commands.attach.budget import Budget, read_budget
from knobscope.commands.attach.busy_files import BusyFile, list_busy
from knobscope.commands.attach.capability import describe_finding, judge_window
from knobscope.commands.attach.causes import Evidence, find_cause
from knobscope.commands.attach.conclusion import MECHANISMS, Conclusion, conclude, suggest
from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.facts import Facts, read_facts
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.settings import Advice, list_advice
from knobscope.commands.attach.sums import Sums, complete_facts, complete_light_facts, describe_sums
from knobscope.commands.attach.surroundings import Surroundings
from knobscope.commands.attach.target import Target
from knobscope.tables import DeviceProfile
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_count, format_rate, format_seconds, join_words, loosen_units, plural
from knobscope.watch import FileTree, Profile
from knobscope.watch.other_programs import NOTICEABLE_SHARE, describe_others, sum_shares

_INTERVAL_S = 0.1  # of the series
_SAMPLED = (
    "What threads wait for was seen in {looks} looks at their states and system calls in /proc. Who waits for a lock "
    "while another thread of the server flushes counts as waiting for that flush."
)


class ServerPart(TypedDict):
    """The server that was watched."""

    dbms: str | None
    program: str
    version: str | None
    pid: int
    cgroup: str | None
    is_moved: bool
    data: str


class AttachDocument(Profile):
    """What `knobscope attach` writes: what holds the server back, and its profile as `knobscope watch` has it."""

    server: ServerPart
    at_fault: str | None
    is_device: bool | None
    conclusion: str
    suggestion: str | None
    sentences: list[str]
    advice: list[dict[str, Any]]
    settings: dict[str, str]
    findings: list[FindingRow]
    budget: list[dict[str, Any]] | None
    busy_files: list[dict[str, Any]]
    command: list[str]
    device: str
    name: str


@dataclass(frozen=True)
class Subject:
    """What is watched: the server, its program, data and settings; `tables`: file -> table, as its catalogue says."""

    target: Target
    running: Running
    data: DataPlace
    settings: Mapping[str, str]
    tables: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        """Return it in a sentence."""
        place = self.target.place
        where = "moved into a cgroup of its own" if place.is_moved else "watched where it is"
        where += f", in cgroup {place.cgroup}" if place.cgroup else ""
        processes = plural(len(self.target.began), "process", "processes")
        return (
            f"{self.running.title}, process {self.target.pid} ({processes}, {where}), data in "
            f"{self.data.directory} on {self.data.block.name} ({self.data.mount.filesystem})"
        )


@dataclass(frozen=True)
class Diagnosis:
    """A window and what it means."""

    subject: Subject
    profile: Profile
    unit: int
    facts: Facts
    budget: Budget | None
    conclusion: Conclusion
    suggestion: str | None
    advice: Sequence[Advice]
    files: Sequence[BusyFile]
    findings: Sequence[FindingRow]
    sentences: Sequence[str]
    limits: Sequence[str]

    def document(self) -> dict[str, Any]:
        """Return it as data for JSON: the keys of a watched profile, and those of the diagnosis."""
        target, data = self.subject.target, self.subject.data
        server = {
            "dbms": self.subject.running.dbms.name if self.subject.running.dbms else None,
            "program": self.subject.running.program,
            "version": self.subject.running.version,
            "pid": target.pid,
            "cgroup": target.place.cgroup,
            "is_moved": target.place.is_moved,
            "data": str(data.directory),
        }
        judged = {
            "at_fault": self.conclusion.at_fault,
            "is_device": self.conclusion.is_device,
            "conclusion": loosen_units(self.conclusion.headline),
            "suggestion": self.suggestion and loosen_units(self.suggestion),
            "sentences": [loosen_units(sentence) for sentence in self.sentences],
        }
        block = {"device": f"{data.block.major}:{data.block.minor}", "name": data.block.name, "unit": self.unit}
        return {
            "server": server,
            **judged,
            "advice": [asdict(item) for item in self.advice],
            "settings": dict(self.subject.settings),
            "findings": list(self.findings),
            "budget": [asdict(line) for line in self.budget.lines] if self.budget else None,
            "busy_files": [asdict(file) for file in self.files],
            "command": [self.subject.running.name],
            **block,
            **self.profile,
        }

    def describe_server(self) -> str:
        """Return what was watched, and for how long."""
        return f"{self.subject.describe()}; {format_seconds(self.facts.seconds)}, monitor {self.profile['monitor']}"


def diagnose(
    subject: Subject,
    profile: Profile,
    trees: Sequence[FileTree],
    unit: int,
    device: DeviceProfile | None = None,
    limits: Sequence[str] = (),
    sums: tuple[Sums, Sums] | None = None,
    surroundings: tuple[Surroundings, Surroundings] | None = None,
) -> Diagnosis:
    """Return what a window of a server says.

    `device`: what its device can do, None where nobody measured it; `sums`: the kernel's own, without BPF or in light
    mode; `surroundings`: at its start and end.
    """
    facts = read_facts(profile, is_limited=surroundings is not None and bool(surroundings[1].limits))
    if sums is not None:
        facts = (complete_light_facts if profile["monitor"] == "light" else complete_facts)(facts, *sums)
    dbms = subject.running.dbms
    budget = read_budget(profile, dbms.threads if dbms else {}, has_one=facts.has_one)
    files = list_busy(profile, trees, dbms, subject.tables)
    findings = judge_window(subject.running, profile, unit, device)
    evidence = Evidence(facts, profile, unit, files, findings, surroundings, dbms.threads if dbms else {}, device)
    conclusion = conclude(facts, budget, lambda fault: find_cause(fault, evidence))
    advice = list_advice(subject.running, MECHANISMS.get(conclusion.at_fault, ()), subject.settings)
    sentences = [*conclusion.sentences, *(describe_sums(*sums, profile["monitor"]) if sums is not None else [])]
    if sum_shares(others := profile.get("other_programs", [])) >= NOTICEABLE_SHARE:
        sentences.append(
            f"Other programs, clients on this machine included, keep processors busy: {describe_others(others)}."
        )
    if looks := profile.get("wait_samples"):
        sentences.append(_SAMPLED.format(looks=format_count(looks)))
    if device is not None:
        sentences += [describe_finding(finding, device, tells_waits=budget is not None) for finding in findings]
    elif profile["monitor"] == "bpf":
        sentences.append(_describe_best(profile, facts))
    if subject.data.elsewhere:
        sentences.append(
            f"The server also has files open for writing on {join_words(list(subject.data.elsewhere))}, not watched "
            "here (--device names another one)."
        )
    return Diagnosis(
        subject,
        profile,
        unit,
        facts,
        budget,
        conclusion,
        suggest(conclusion, advice),
        advice,
        files,
        findings,
        sentences,
        limits,
    )


def _describe_best(profile: Profile, facts: Facts) -> str:
    """Return what the device did at best within the window, where nobody has measured what it can."""
    rates: dict[float, float] = defaultdict(float)
    for row in profile["series"]:
        if row["op"] in ("read", "write"):  # flushes have no owner: those of all programs are in the series
            rates[row["t_s"]] += row["requests"] or 0
    intervals = max(round(facts.seconds / _INTERVAL_S), 1)
    best = max(rates.values(), default=0.0) * intervals / facts.seconds
    return (
        "No profile says what the device can do (--profile, --characterise). In the best tenth of a second of this "
        f"window it took {format_rate(best, 'requests/s')} of the server, on average "
        f"{format_rate(facts.requests_per_s, 'requests/s')}."
    )

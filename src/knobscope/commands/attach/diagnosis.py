"""Everything that attach says of one window, ready to be shown as text, JSON or a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from knobscope.commands.attach.budget import Budget, read_budget
from knobscope.commands.attach.conclusion import MECHANISMS, Conclusion, conclude, suggest
from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.facts import Facts, read_facts
from knobscope.commands.attach.files import BusyFile, list_busy
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.settings import Advice, list_advice
from knobscope.commands.attach.target import Target
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_seconds, join_words, plural
from knobscope.watch import FileTree, Profile

__all__ = ["Diagnosis", "Subject", "diagnose"]


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
        processes = plural(len(self.target.pids), "process", "processes")
        return (
            f"{self.running.title}, process {self.target.pid} ({processes}, {where}), data in "
            f"{self.data.directory} on {self.data.block.name} ({self.data.mount.filesystem})"
        )


@dataclass(frozen=True)
class Diagnosis:
    """A window and what it means."""

    subject: Subject
    profile: Profile
    facts: Facts
    budget: Budget | None
    conclusion: Conclusion
    suggestion: str | None
    advice: Sequence[Advice]
    files: Sequence[BusyFile]
    findings: Sequence[FindingRow]
    remarks: Sequence[str]
    limits: Sequence[str]

    def describe_server(self) -> str:
        """Return what was watched, and for how long."""
        return f"{self.subject.describe()}; {format_seconds(self.facts.seconds)}, monitor {self.profile['monitor']}"


def diagnose(
    subject: Subject,
    profile: Profile,
    trees: Sequence[FileTree],
    findings: Sequence[FindingRow] = (),
    limits: Sequence[str] = (),
) -> Diagnosis:
    """Return what a window of a server says."""
    facts = read_facts(profile)
    budget = read_budget(profile, facts.one_share)
    conclusion = conclude(facts, budget)
    dbms = subject.running.dbms
    advice = list_advice(dbms, MECHANISMS.get(conclusion.at_fault, ()), subject.settings)
    files = list_busy(profile, trees, dbms, subject.tables)
    remarks = []
    if subject.data.elsewhere:
        remarks.append(
            f"The server also has files open for writing on {join_words(list(subject.data.elsewhere))}, not watched "
            "here (--device names another one)."
        )
    return Diagnosis(
        subject,
        profile,
        facts,
        budget,
        conclusion,
        suggest(conclusion, advice),
        advice,
        files,
        findings,
        remarks,
        limits,
    )

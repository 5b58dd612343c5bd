"""`knobscope durability`: which settings of a DBMS lose acknowledged writes when the power is cut."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, computed_field

from knobscope.document_part import Part
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import Dbms, Knob, Value, Workload, read_spec, suggest, value_text
from knobscope.specs.reading.arguments import find_spec
from knobscope.stages.measure import PowerCut, count_losses, loses_more, open_cutter
from knobscope.stages.plan import DesignSpace, smallest_change
from knobscope.text.formats import format_count, plural

#: Of two cuts against two of the default no loss is beyond chance.
_FEWEST_CUTS = 3


class Tried(Part):
    """A setting, and what the power cuts did; the default configuration has no knob."""

    knob: str | None
    value: Value | None
    is_risky: bool = Field(description="Whether the spec marks the value as a risk.")
    change: dict[str, Value] = Field(description="Other knobs that are set with it, without which it does nothing.")
    cuts: list[PowerCut] = Field(description="`lost` is null where the DBMS did not come back.")
    failure: str = Field(description="Why it could not be tried, or not as often; empty where it was.")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def loses(self) -> bool:
        """Whether a cut lost an acknowledged row, or the DBMS."""
        return count_losses(self.cuts) > 0

    def is_wrong(self, default: "Tried") -> bool:
        """Whether the spec does not call the setting a risk, and it loses more than the default."""
        return not self.is_risky and loses_more(self.cuts, default.cuts)

    def describe(self, default: "Tried") -> str:
        """Return what happened, and what the spec says, in a line."""
        name = "default configuration" if self.value is None else f"{self.knob} = {value_text(self.value)}"
        if self.change:
            name += f" (with {', '.join(f'{knob} = {value_text(value)}' for knob, value in self.change.items())})"
        if not self.cuts:
            return f"{name}: not tried: {self.failure}"
        ended = f"; then no more were possible: {self.failure}" if self.failure else ""
        return f"{name}: {self._describe_loss()}{self._describe_mark(default)}{ended}"

    def _describe_mark(self, default: "Tried") -> str:
        if self.is_risky:
            return "; marked as a risk" + ("" if self.loses else ", which these cuts do not show")
        if self.knob is None:
            return "; the spec does not mark it as a risk" if self.loses else ""
        if self.is_wrong(default):
            return "; WRONG: the spec does not mark it as a risk"
        return "; not clearly more than the default" if self.loses else ""

    def _describe_loss(self) -> str:
        cuts = plural(len(self.cuts), "power cut")
        lost = [cut.lost for cut in self.cuts if cut.lost]
        broken = [cut.reason for cut in self.cuts if cut.lost is None]
        parts = [f"lost acknowledged rows in {len(lost)} of {cuts}, {format_count(max(lost))} at most"] if lost else []
        parts += [f"did not come back after {len(broken)} of {cuts}: {broken[0]}"] if broken else []
        rows = format_count(sum(cut.acknowledged for cut in self.cuts))
        return "; ".join(parts) or f"kept all {rows} acknowledged rows in {cuts}"


class DurabilityDocument(Part):
    """What `knobscope durability` writes."""

    dbms: str
    cuts: int = Field(description="Power cuts of each setting.")
    settings: list[Tried] = Field(description="The default configuration first.")


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    if os.geteuid() != 0:
        raise UserError("a power cut shuts a file system down, which needs root")
    if args.cuts < _FEWEST_CUTS:
        raise UserError(
            f"--cuts is {args.cuts}; expected at least {_FEWEST_CUTS}: fewer cannot tell losses from chance"
        )
    dbms = read_spec(find_spec("DBMS", args.dbms, args.root / "specs/dbms"), Dbms, None)[1]
    workload = read_spec(find_spec("workload", "ycsb-a", args.root / "specs/workloads"), Workload, None)[1]
    settings = [*list_settings(dbms, workload, args.knob or [])]
    default = {name: knob.default for name, knob in dbms.knobs.items()}
    everything: list[Tried] = []
    with open_cutter(args.directory) as cut:
        for knob, value, is_risky, change in settings:
            own = {} if knob is None or value is None else {knob: value}
            cuts, failure = cut(dbms, workload, default | change | own, args.cuts)
            tried = Tried(knob=knob, value=value, is_risky=is_risky, change=change, cuts=cuts, failure=failure)
            everything.append(tried)
            print(tried.describe(everything[0]), file=sys.stderr if args.json == "-" else sys.stdout, flush=True)
    document = DurabilityDocument(dbms=dbms.name, cuts=args.cuts, settings=everything)
    write_document(args, document.model_dump())
    return int(any(tried.is_wrong(everything[0]) or tried.failure for tried in everything))


def list_settings(
    dbms: Dbms, workload: Workload, names: list[str]
) -> Iterator[tuple[str | None, Value | None, bool, dict[str, Value]]]:
    """Yield (knob, value, whether the spec calls it a risk, other knobs without which it would have no effect).

    Knobs are those named, or all that decide what a cut loses.
    """
    levels = {name: _list_levels(knob, is_named=name in names) for name, knob in dbms.knobs.items()}
    default = {name: knob.default for name, knob in dbms.knobs.items()}
    space = DesignSpace(dbms, levels, default, {"threads": 1, "records": workload.records})
    counting = [name for name in dbms.knobs if space.counts(name, default)]
    yield None, None, bool(dbms.list_risks({}, counting)), {}
    for name in names:
        if name not in dbms.knobs:
            raise UserError(f"{dbms.name} has no knob {name!r}; expected {suggest(name, sorted(dbms.knobs))}")
    for name, knob in dbms.knobs.items():
        if name not in names if names else not (knob.durability or knob.mechanism == "flush"):
            continue
        for value in dict.fromkeys([*levels[name], *knob.risky_values]):
            if value != knob.default and knob.problem_with(value) is None:
                change = smallest_change(space, levels, name, value) or {}
                yield name, value, bool(dbms.list_risks({**change, name: value}, [name, *change])), change


def _list_levels(knob: Knob, *, is_named: bool) -> list[Value]:
    """Return the values of a knob that are tried, and its default; of a number that decides, the ends of its range."""
    ends = knob.range if knob.range is not None and (is_named or knob.durability is True) else ()
    return list(dict.fromkeys([knob.default, *(knob.possible_values or ends)]))


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "durability",
        help="cut the power of a DBMS and show which settings lose acknowledged writes; needs root",
        description="Cut the power of a DBMS while rows are written, and count the acknowledged rows that are gone "
        "afterwards: for the default configuration, and for the values of knobs that decide about flushes. The data "
        "lies on a file system of its own, which is shut down at a random moment, so that only what was made durable "
        "is left. Exit code 1: a value that the spec does not mark as a risk loses more than the default, beyond "
        "chance, or a setting could not be tried. Needs root.",
    )
    parser.add_argument("dbms", metavar="DBMS", help="name of the DBMS, or its spec")
    parser.add_argument("--knob", action="append", metavar="KNOB", help="try the values of this knob (repeatable)")
    parser.add_argument("--cuts", type=int, default=5, metavar="N", help="power cuts of each setting (default: 5)")
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="where the file system's image lies (default: here)"
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are used")
    add_json_argument(parser, DurabilityDocument, may_be_file=True)
    parser.set_defaults(run=_run)

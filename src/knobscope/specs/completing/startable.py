"""Which values a server starts with, as `knobscope startable` found out; plans keep to them.

A record is a file `specs/startable/DBMS-MAJOR.json`, or `DBMS-VERSION.json` for a second version with the same major
number. All records of a DBMS count, whatever version is installed: a
study is the same wherever it is planned.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from knobscope.specs.models.dbms import Clash, Dbms
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.study import Study
from knobscope.specs.reading.base import Name, SpecModel, Value
from knobscope.specs.reading.source import Document, Location, SpecProblem, load_document, show_path, show_value
from knobscope.specs.reading.validate import validate_document

Ends = Annotated[list[int | float], Field(min_length=2, max_length=2)]


class Refusal(SpecModel):
    """A value with which the server does not start."""

    value: int | float = Field(description="The refused value next to the startable range.")
    words: str = Field(description="What the server said to the first value that it refused on this side.")
    breaks: str | None = Field(default=None, description="The `requires` of the spec that the value breaks.")


class StartableKnob(SpecModel):
    """What was found out about one knob, all other knobs at their defaults."""

    asked: Ends = Field(description="Smallest and largest value that was tried.")
    startable: Ends = Field(description="Smallest and largest value that started, up to 1 % at a refused end.")
    below: Refusal | None = Field(default=None, description="Why it does not start further down.")
    above: Refusal | None = Field(default=None, description="Why it does not start further up.")
    read_back: dict[str, str] = Field(
        default_factory=dict, description="Values that started, but read back as something else: value -> in force."
    )

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Ends that bind plans, None where none does: one that a `requires` explains depends on other knobs."""
        low, high = self.startable
        return (
            low if self.below is not None and self.below.breaks is None else None,
            high if self.above is not None and self.above.breaks is None else None,
        )


class RefusedSetting(SpecModel):
    """The fewest values that, set together, a server refused or changed; without any one of them it did not."""

    values: Annotated[dict[str, Value], Field(min_length=1)] = Field(description="The values, by knob.")
    words: str = Field(description="What the server said, or what it made of a value.")
    becomes: Value | None = Field(
        default=None, description="What the server takes the value for, where it is one value that the knob can have."
    )
    beside: dict[str, Value] = Field(
        default_factory=dict, description="What the study replaced in the defaults (`baseline`) when it was found."
    )

    def concerns(self, dbms: Dbms, usual: Mapping[str, Value]) -> bool:
        """Whether it was found together with the defaults that a study has; `usual` is its `baseline`."""
        has_knobs = self.values.keys() <= dbms.knobs.keys()
        return has_knobs and all(_usual_value(dbms, name, usual) == value for name, value in self.beside.items())


def _usual_value(dbms: Dbms, name: str, usual: Mapping[str, Value]) -> Value | None:
    return usual.get(name, dbms.knobs[name].default if name in dbms.knobs else None)


class StartableRecord(SpecModel):
    """What one version of a DBMS starts with."""

    dbms: Name = Field(description="DBMS, by the name of its file.")
    version: str = Field(description="Version that was started.")
    tried: str = Field(description="Day of the last start.")
    knobs: dict[str, StartableKnob] = Field(description="By the names of the spec.")
    refused: list[RefusedSetting] = Field(
        default_factory=list, description="What was refused of configurations that studies draw, in order of discovery."
    )


def read_record(path: Path) -> StartableRecord:
    """Return the record in a file; raises SpecErrors for a broken one."""
    return validate_document(load_document(path), StartableRecord)


def read_records(folder: Path, dbms: Dbms) -> dict[str, StartableRecord]:
    """Return the records of a DBMS in a folder, by the file as people see it; raises SpecErrors for a broken one."""
    records = {}
    for path in sorted(folder.glob(f"{dbms.name}-*.json")):
        record = read_record(path)
        if record.dbms == dbms.name:
            records[show_path(path)] = record
    return records


def check_startable(
    document: Document, study: Study, dbms: Dbms, records: Mapping[str, StartableRecord]
) -> Iterator[SpecProblem]:
    """Yield values and ends of ranges in a study with which the server would not start."""
    for location, value in _values_asked(study, dbms.name):
        name = str(location[2])
        for file, record in records.items():
            knob = record.knobs.get(name)
            if knob is not None and not _is_within(value, knob, dbms.knobs[name]):
                low, high = knob.startable
                refusal = knob.below if isinstance(value, int | float) and value < low else knob.above
                why = f" ({refusal.words})" if refusal else ""
                found = f"{show_value(value)}, with which {dbms.name} {record.version} does not start{why}"
                yield document.problem(location, found, f"a value in [{low}, {high}], as {file} has it")
            for setting in record.refused:
                is_named = location[3:4] != ("range",)  # an end of a range stands for what is between them, too
                is_refused = is_named and setting.values == {name: value} and setting.becomes is None
                if is_refused and setting.concerns(dbms, study.baseline.get(dbms.name, {})):
                    found = f"{show_value(value)}, which {dbms.name} {record.version} refuses ({setting.words})"
                    yield document.problem(location, found, f"another value, as {file} has it")


def _values_asked(study: Study, dbms: str) -> Iterator[tuple[Location, Value]]:
    """Yield each value of a DBMS that a study names, with its location."""
    for name, choice in study.knobs.get(dbms, {}).items():
        for key in ("values", "range"):
            for index, value in enumerate(getattr(choice, key, None) or []):
                yield ("knobs", dbms, name, key, index), value
    for name, value in study.baseline.get(dbms, {}).items():
        yield ("baseline", dbms, name), value


def _is_within(value: Value, knob: StartableKnob, spec: Knob) -> bool:
    if isinstance(value, bool | str) or value in spec.special:
        return True
    low, high = knob.limits
    return (low is None or value >= low) and (high is None or value <= high)


def narrow_knobs(dbms: Dbms, records: Mapping[str, StartableRecord]) -> Dbms:
    """Return the DBMS with ranges and numeric values cut to what starts; defaults stay, for they do."""
    knobs = dict(dbms.knobs)
    for record in records.values():
        for name, startable in record.knobs.items():
            if name in knobs:
                knobs[name] = _narrow(knobs[name], startable)
    return dbms.model_copy(update={"knobs": knobs})


def _narrow(knob: Knob, startable: StartableKnob) -> Knob:
    if knob.values is not None:
        return knob.model_copy(
            update={"values": [value for value in knob.values if _is_within(value, startable, knob)]}
        )
    if knob.range is None:
        return knob
    low, high = startable.limits
    ends = [knob.range[0] if low is None else max(low, knob.range[0])]
    ends.append(knob.range[1] if high is None else min(high, knob.range[1]))
    return knob.model_copy(update={"range": ends}) if ends[0] < ends[1] else knob


def refuse_settings(dbms: Dbms, refused: Iterable[RefusedSetting], usual: Mapping[str, Value]) -> Dbms:
    """Return the DBMS that knows which values it refuses, alone and together, and which it takes for others.

    `usual` is the `baseline` of the study: what was found together with other defaults does not count.
    """
    knobs, clashes = dict(dbms.knobs), list(dbms.clashes)
    for setting in refused:
        if not setting.concerns(dbms, usual):
            continue
        if len(setting.values) > 1:
            clashes.append(Clash(values=setting.values, words=setting.words))
            continue
        ((name, value),) = setting.values.items()
        knob = knobs[name]
        if setting.becomes is None:
            knobs[name] = knob.model_copy(update={"refused": {**knob.refused, value: setting.words}})
        else:
            knobs[name] = knob.model_copy(update={"becomes": {**knob.becomes, value: setting.becomes}})
    return dbms.model_copy(update={"knobs": knobs, "clashes": clashes})

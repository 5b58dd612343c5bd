"""The settings of a running server: as it answers, as its command line and variables say; and the knobs worth a try."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.commands.attach.program import Running, read_command, read_environment
from knobscope.specs import Dbms, Knob, Value, value_text
from knobscope.specs.models.dbms import is_factor
from knobscope.specs.models.programs import is_between
from knobscope.text.formats import format_value, loosen_units
from knobscope.units import read_number

_MOST = 5


@dataclass(frozen=True)
class Advice:
    """A knob that controls the bottleneck; `value`: what is in force, with its unit, None: not known.

    `default` is the DBMS's own, and empty where the spec is one of other versions.
    """

    knob: str
    value: str | None
    default: str
    risk: str
    description: str
    source: str

    @property
    def words(self) -> str:
        """Name the knob with its value and its risk."""
        now = f"now {self.value}" if self.value is not None else f"default {self.default}" if self.default else ""
        notes = "; ".join(filter(None, [now, self.risk]))
        return f"{self.knob} ({notes})" if notes else self.knob


def read_arguments(running: Running, pid: int) -> dict[str, str]:
    """Return the knobs that the command line of a server sets: `-c name=value`, `--name=value`."""
    if running.dbms is None:
        return {}
    names = {(knob.alias or name).replace("-", "_"): name for name, knob in running.dbms.knobs.items()}
    values = {}
    for word in read_command(pid)[1:]:
        name, mark, value = word.lstrip("-").partition("=")
        if mark and (knob := names.get(name.replace("-", "_"))) is not None:
            values[knob] = value
    return values


def read_variables(running: Running, pid: int) -> dict[str, str]:
    """Return the knobs that the environment of a server sets, where the spec writes them there."""
    dbms = running.dbms
    targets = {} if dbms is None else {name: target for name in dbms.knobs if (target := dbms.variable_of(name))}
    if dbms is None or not targets:
        return {}
    environment, values = read_environment(pid), {}
    for name, variable in targets.items():
        if variable in environment and (value := _find_value(dbms, name, environment[variable])) is not None:
            values[name] = value
    return values


def _find_value(dbms: Dbms, name: str, text: str) -> str | None:
    """Return what a variable sets a knob to; where several knobs share one, the last of its parts that name this one.

    In `{property},{knob}={value}` the first literal text separates the parts.
    """
    knob, writing = dbms.knobs[name], dbms.writing_of(name)
    assert writing is not None  # noqa: S101 - it names the variable
    template = writing.value.replace("{knob}", knob.alias or name).replace("{unit}", knob.unit or "")
    head, is_shared, part = template.rpartition("{property}")
    before, _, after = part.partition("{value}")
    if is_shared and not head and (separator := before[:1]):
        pattern, texts = f"{re.escape(before[1:])}(.*){re.escape(after)}", text.split(separator)
    else:
        pattern, texts = f"{re.escape(before)}(.*){re.escape(after)}", [text]
    values = [match[1] for one in texts if (match := re.fullmatch(pattern, one))]
    return values[-1] if values and not head else None


def list_advice(running: Running, mechanisms: Sequence[str], settings: Mapping[str, str]) -> list[Advice]:
    """Return the first few of the knobs that `choose_knobs` chooses, which the running version has."""
    dbms, version = running.dbms, running.version
    if dbms is None:
        return []
    chosen = [
        (name, knob)
        for name, knob in choose_knobs(dbms, mechanisms, settings)
        if version is None or is_between(version, knob.since, knob.until)
    ]
    is_described = version is None or is_between(version, dbms.since, dbms.until)
    return [_advise(dbms, name, knob, settings, is_described=is_described) for name, knob in chosen[:_MOST]]


def choose_knobs(dbms: Dbms, mechanisms: Sequence[str], settings: Mapping[str, str]) -> list[tuple[str, Knob]]:
    """Return the knobs of mechanisms, in their order and that of the spec; last, those that count with others only.

    Those that do not count with the `settings` that are in force are left out.
    """
    known = _read_settings(dbms, settings)
    own = {name: knob.own_default for name, knob in dbms.knobs.items()}
    values = {name: value for name, value in own.items() if value is not None} | known

    def counts(knob: Knob) -> bool:
        return knob.condition is None or not knob.condition.names <= values.keys() or knob.condition.holds(values)

    chosen = [
        (name, knob)
        for mechanism in mechanisms
        for name, knob in dbms.knobs.items()
        if knob.mechanism == mechanism and not is_factor(name) and dbms.part_of(name) is None
        if counts(knob) or (knob.condition is not None and not knob.condition.names <= known.keys())
    ]
    return sorted(chosen, key=lambda choice: not counts(choice[1]))


def _read_settings(dbms: Dbms, settings: Mapping[str, str]) -> dict[str, Value]:
    """Return the values in force that are known."""
    values = {name: parse_setting(dbms, name, text) for name, text in settings.items() if name in dbms.knobs}
    return {name: value for name, value in values.items() if value is not None}


def _advise(dbms: Dbms, name: str, knob: Knob, settings: Mapping[str, str], *, is_described: bool) -> Advice:
    known = _read_settings(dbms, settings)
    values = [value for value in knob.risky_values if knob.risks(value, known)]
    risk = "risk: any other value can lose committed data" if knob.durability is True else ""
    if values:
        risk = f"risk: {' or '.join(dbms.write(value) for value in values)} can lose committed data"

    def show(text: str) -> str:
        return re.sub(r" \(([^()]*)\)$", r", \1", loosen_units(format_value(dbms, name, text)))  # shown in brackets

    default = show(dbms.write(knob.default if knob.built_in is None else knob.built_in)) if is_described else ""
    now = settings.get(name)
    return Advice(name, None if now is None else show(now), default, risk, knob.description or "", knob.source)


def parse_setting(dbms: Dbms, name: str, text: str) -> Value | None:
    """Return a value in force as studies write it; None where the knob cannot take it."""
    knob = dbms.knobs[name]
    for value, answer in knob.reads_back.items():
        if value_text(answer).lower() == text.lower():
            return value
    candidates: list[Value] = list(knob.possible_values)
    for value in candidates:
        spellings = {value_text(value).lower(), dbms.write(value).lower()}
        spellings |= (
            ({"1", "on", "yes", "true"} if value else {"0", "off", "no", "false"}) if isinstance(value, bool) else set()
        )
        if text.lower() in spellings:
            return value
    if candidates:
        return None
    number = read_number(text, knob.unit)
    if number is None:
        return text if text in map(str, knob.special) else None
    value = int(number) if knob.type == "integer" else number
    return value if knob.problem_with(value) is None else None

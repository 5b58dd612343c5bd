"""Compares what a configuration asks for with what the DBMS says is in force."""

import subprocess
from collections.abc import Mapping
from difflib import get_close_matches
from glob import glob
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.processes import OutputLimitError, capture
from knobscope.servers.answers import ANSWER_PARSERS
from knobscope.servers.instance import Configuration, Instance
from knobscope.servers.server import ServerFailedError
from knobscope.specs import Dbms, Knob, Value
from knobscope.tables import EffectiveValueRow
from knobscope.text.formats import list_names
from knobscope.units import read_number

_ANSWER_S = 60
#: How similar a name is to that of a knob that may be meant.
_LIKE = 0.75


def readback_request(dbms: Dbms, knobs: list[str]) -> dict[str, Any]:
    """Return the question the load client asks on each of its connections, in the client's form.

    Where parts of the data lie is no question for the DBMS.
    """
    readback = dbms.readback
    if readback.query is not None:
        return {"query": readback.query}
    if readback.each is None:
        return {"each": {}}
    names = {knob: dbms.knobs[knob].alias or knob for knob in knobs if dbms.part_of(knob) is None}
    return {"each": {knob: readback.each.format(knob=name) for knob, name in names.items()}}


def ask_instance(instance: Instance) -> dict[str, str]:
    """Return what a command prints, or a file says, about the values in force; nothing when connections are asked.

    Raises ServerFailedError when the command fails or there is no file, UserError when the parser cannot read what
    there is, or finds no knob in it: then the spec is wrong, and not the configuration.
    """
    readback, readable = instance.dbms.readback, [name for name, knob in instance.dbms.knobs.items() if knob.readable]
    if readback.by_client or readback.way is None:
        return {}
    if readback.file is not None:
        text = _read_newest(instance, instance.fill(readback.file))
    else:
        text = _ask_command(instance, readback.command or [])
    try:
        answers = ANSWER_PARSERS[readback.parser or ""](text)
        if readable and answers.keys().isdisjoint(readable):
            names = list_names(list(answers)) or "no name at all"
            raise ValueError(f"it finds {names} there, and none of the knobs, such as {readable[0]}")
        return answers
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the spec of {instance.dbms.name}: readback.parser: {readback.parser} cannot read what "
            f"`readback.{readback.way}` gives ({_tell_error(error)}): it begins with {text[:80]!r}; expected another "
            f"parser, or another `{readback.way}`"
        ) from error


def _tell_error(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)


def _ask_command(instance: Instance, command: list[str]) -> str:
    try:
        return output_of(instance, instance.fill_command(command, {}, "start"))
    except ServerFailedError as error:
        raise ServerFailedError(f"`readback.command`: {error}", error.log_tail, error.exit_code) from error


def output_of(instance: Instance, command: list[str]) -> str:
    """Return what a command, ready to run, prints. ServerFailedError: it fails, hangs or prints too much."""
    process = instance.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        code, output, errors = capture(process, _ANSWER_S)
    except subprocess.TimeoutExpired as error:
        raise ServerFailedError(f"{command[0]} did not answer within {_ANSWER_S} s", "") from error
    except OutputLimitError as error:
        raise ServerFailedError(f"{command[0]} {error}", "") from error
    if code != 0:
        raise ServerFailedError(f"{command[0]} ended with exit code {code}", output + errors)
    return output


def _read_newest(instance: Instance, pattern: str) -> str:
    """Read the newest file that matches, as the server's user: its directory is that user's to change."""
    files = [Path(path) for path in glob(pattern)]  # noqa: PTH207 - the pattern is absolute
    if not files:
        raise ServerFailedError(
            f"no file {Path(pattern).name}, of which the spec says that the DBMS writes it when it opens its data "
            f"(`readback.file`: {instance.dbms.readback.file})",
            "",
        )
    newest = max(files, key=lambda path: (path.lstat().st_mtime_ns, path.name))
    return output_of(instance, ["/bin/cat", "--", str(newest)])


def compare_effective(
    dbms: Dbms, configuration: Configuration, effective: Mapping[str, str]
) -> tuple[list[EffectiveValueRow], dict[str, str]]:
    """Return rows (knob, requested, effective), and for each knob whose value is not in force what was found instead.

    Numbers are compared as numbers, without a unit, with the knob's or with another one (1s for 1000 ms), booleans in
    any spelling, and a value that the DBMS writes differently through the knob's `reads_back`. A knob that is not
    `readable` may have no answer, and where the DBMS cannot be asked none has.
    """
    rows: list[EffectiveValueRow] = []
    differing = {}
    for name, value in configuration.items():
        answer = effective.get(name)
        rows.append({"knob": name, "requested": dbms.write(value), "effective": answer})
        knob = dbms.knobs[name]
        is_checkable = answer is not None or (knob.readable and dbms.readback.way is not None)
        if is_checkable and (answer is None or not _is_same(dbms, knob, value, answer)):
            differing[name] = _describe_difference(dbms, rows[-1], knob.reads_back.get(value), effective)
    return rows, differing


def _describe_difference(
    dbms: Dbms, row: EffectiveValueRow, expected: Value | None, effective: Mapping[str, str]
) -> str:
    """Say what was requested of a knob, what was found, by which part of the spec, and what that expects there."""
    is_part = dbms.part_of(row["knob"]) is not None
    way = "where its files lie" if is_part else f"by `readback.{dbms.readback.way}`"
    answer = "is not read back" if row["effective"] is None else f"reads back {row['effective']}"
    if row["effective"] is None and (similar := _find_similar(row["knob"], list(effective))):
        way += f", which has {list_names(similar)}"
    wanted = "" if expected is None else f"; `reads_back` expects {dbms.write(expected)}"
    return f"{row['knob']}={row['requested']} {answer} ({way}{wanted})"


def _find_similar(knob: str, names: list[str]) -> list[str]:
    """Return the names that may be meant by a knob: the same inside other objects, or spelt like it."""
    inside = [name for name in names if name.rpartition(".")[2] == knob.rpartition(".")[2]]
    return inside or get_close_matches(knob, names, cutoff=_LIKE)


def _is_same(dbms: Dbms, knob: Knob, value: Value, answer: str) -> bool:
    expected = knob.reads_back.get(value, value)
    if isinstance(expected, bool):
        spellings = (
            {"0", "off", "false", "no", dbms.booleans[0].lower()},
            {"1", "on", "true", "yes", dbms.booleans[1].lower()},
        )
        return answer.lower() in spellings[int(expected)]
    if isinstance(expected, int | float):
        return read_number(answer, knob.unit) == float(expected)
    return answer.lower() == expected.lower()

"""Compares what a configuration asks for with what the DBMS says is in force."""

import subprocess
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from typing import Any

from knobscope.servers.answers import ANSWER_PARSERS
from knobscope.servers.instance import Configuration, Instance
from knobscope.servers.server import ServerFailedError
from knobscope.specs import Dbms, Knob, Value

__all__ = ["ask_instance", "compare_effective", "readback_request"]


def readback_request(dbms: Dbms, knobs: list[str]) -> dict[str, Any]:
    """Return the question the load client asks on each of its connections, in the client's form."""
    readback = dbms.readback
    if readback.query is not None:
        return {"query": readback.query}
    if readback.each is None:
        return {"each": {}}
    names = {knob: dbms.knobs[knob].alias or knob for knob in knobs}
    return {"each": {knob: readback.each.format(knob=name) for knob, name in names.items()}}


def ask_instance(instance: Instance) -> dict[str, str]:
    """Return what a command prints, or a file says, about the values in force; nothing when connections are asked.

    Raises ServerFailedError when the command fails, there is no file, or the parser cannot read it.
    """
    readback = instance.dbms.readback
    if readback.by_client:
        return {}
    if readback.file is not None:
        text = _newest(instance.fill(readback.file))
    else:
        text = _run(instance, readback.command or [])
    try:
        return ANSWER_PARSERS[readback.parser or ""](text)
    except (ValueError, KeyError, TypeError) as error:
        raise ServerFailedError(f"no {readback.parser} answer on the values in force: {error}", text[:2000]) from error


def _run(instance: Instance, command: list[str]) -> str:
    filled = instance.fill_command(command, {}, "start")
    output = subprocess.run(
        filled, capture_output=True, text=True, timeout=60, check=False, env=instance.environment, cwd="/"
    )
    if output.returncode != 0:
        raise ServerFailedError(f"{filled[0]} ended with exit code {output.returncode}", output.stdout + output.stderr)
    return output.stdout


def _newest(pattern: str) -> str:
    files = [Path(path) for path in glob(pattern)]  # noqa: PTH207 - the pattern is absolute
    if not files:
        raise ServerFailedError(f"no file {Path(pattern).name} in the data directory tells the values in force", "")
    return max(files, key=lambda path: (path.stat().st_mtime_ns, path.name)).read_text(encoding="utf-8")


def compare_effective(
    dbms: Dbms, configuration: Configuration, effective: Mapping[str, str]
) -> tuple[list[dict[str, str | None]], list[str]]:
    """Return rows (knob, requested, effective), and the knobs whose value is not in force.

    Numbers are compared as numbers, with or without the knob's unit behind them, booleans in any spelling, and a value
    that the DBMS writes differently through the knob's `reads_back`. A knob that is not `readable` may have no answer.
    """
    rows: list[dict[str, str | None]] = []
    differing = []
    for name, value in configuration.items():
        answer = effective.get(name)
        rows.append({"knob": name, "requested": dbms.write(name, value), "effective": answer})
        knob = dbms.knobs[name]
        told = answer is not None or knob.readable
        if told and (answer is None or not _is_same(dbms, knob, value, answer)):
            differing.append(name)
    return rows, differing


def _is_same(dbms: Dbms, knob: Knob, value: Value, answer: str) -> bool:
    expected = knob.reads_back.get(value, value)
    if isinstance(expected, bool):
        spellings = (
            {"0", "off", "false", "no", dbms.booleans[0]},
            {"1", "on", "true", "yes", dbms.booleans[1]},
        )
        return answer.lower() in spellings[int(expected)]
    if isinstance(expected, int | float):
        bare = answer.lower().removesuffix((knob.unit or "").lower()).strip()
        try:
            return float(bare) == float(expected)
        except ValueError:
            return False
    return answer.lower() == expected.lower()

"""Knobs as YAML that people read: the `knobs:` part of a spec."""

import json
import textwrap
from datetime import UTC, datetime
from typing import Any

import yaml

from knobscope.commands.introspect.catalogue import Catalogue
from knobscope.machine_code import Code


class _Dumper(yaml.SafeDumper):
    """Lists in a line, a blank line before each knob comes later."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never write an alias: specs have none."""
        return True


def _in_line(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(list, _in_line)


def render_knobs(name: str, version: str, catalogue: Catalogue, code: Code | None = None) -> str:
    """Return `knobs:` with a heading that says where it comes from and what is not in it.

    Above a knob stands how the code gets from the function that reads it to a request to storage, if it does.
    """
    total = len(catalogue.knobs) + len(catalogue.left_out)
    lines = [
        f"# {name} {version}: {len(catalogue.knobs)} of {total} settings, written by `knobscope introspect {name}`.",
        "# Ranges are those of the catalogue, or a guess around the default: a value inside may still not start.",
        "# Mechanisms of knobs that no shipped catalogue has are guesses by name, description and code: check them.",
    ]
    for reason, settings in catalogue.group_left_out().items():
        listed = f"Left out, {reason} ({len(settings)}): {', '.join(settings)}"
        lines += [f"# {line}" for line in textwrap.wrap(listed, 118, subsequent_indent="  ", break_long_words=False)]
    parts = [
        _tell_path(knob, code) + yaml.dump({knob: of}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        for knob, of in catalogue.knobs.items()
    ]
    body = "\n".join("".join(f"  {line}\n" for line in part.splitlines()) for part in parts)
    return "\n".join([*lines, "knobs:", "", body])


def _tell_path(knob: str, code: Code | None) -> str:
    """Return a comment with the functions on the shortest way from a setting to storage; names are the program's."""
    nearest = None if code is None else code.nearest(knob)
    return "" if nearest is None else f"# read by {' > '.join(nearest.path)}\n"


def render_catalogue(name: str, version: str, catalogue: Catalogue) -> str:
    """Return the JSON from which studies take knobs that the spec does not describe; a line for each knob."""
    head = {
        "dbms": name,
        "version": version,
        "asked": datetime.now(UTC).date().isoformat(),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    left_out = [f"  {json.dumps(reason)}: {json.dumps(names)}" for reason, names in catalogue.group_left_out().items()]
    knobs = [
        f"  {json.dumps(knob)}: {json.dumps(entry, ensure_ascii=False)}" for knob, entry in catalogue.knobs.items()
    ]
    return "\n".join(
        ["{", *lines, ' "left_out": {', ",\n".join(left_out), " },", ' "knobs": {', ",\n".join(knobs), " }", "}", ""]
    )

"""Parsers of what a DBMS says about its settings: text to name -> value, one parser per form."""

import json
import re
from collections.abc import Callable
from typing import Any


def parse_pairs(text: str) -> dict[str, str]:
    """Read a name on one line and its value on the next, as redis-cli prints them when nobody watches."""
    lines = text.removesuffix("\n").split("\n")
    return dict(zip(lines[::2], lines[1::2], strict=False))


def parse_table(text: str) -> dict[str, str]:
    """Read name and value on a line, between them blanks, tabs, `=`, `:` or `|`; other lines do not count."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        match = re.match(r"^[\s|]*([A-Za-z][\w.-]*)\s*(?:[=:|\t]|\s)\s*(.*?)[\s|]*$", line)
        if match:
            settings.setdefault(match[1], match[2])
    return settings


def parse_json(text: str) -> dict[str, str]:
    """Read an object, or a list of objects with `name` and `value`; what comes before it is skipped, as [INFO] is."""
    begin = re.search(r"\{|\[(?=\s*[{\]])", text)
    content, _ = json.JSONDecoder().raw_decode(text, begin.start() if begin else 0)
    if isinstance(content, list):
        content = {str(row["name"]): row["value"] for row in content}
    if not isinstance(content, dict):
        raise ValueError(f"found {json.dumps(content)}; expected an object, or a list of objects")
    return _flatten(content, "")


def _flatten(content: dict[str, Any], prefix: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            settings |= _flatten(value, f"{prefix}{name}.")
        else:
            settings[f"{prefix}{name}"] = value if isinstance(value, str) else json.dumps(value)
    return settings


def parse_ini(text: str) -> dict[str, str]:
    """Read `name=value` below any heading; the first of several counts (in RocksDB: the default column family)."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, value = line.strip().partition("=")
        if mark and not name.startswith(("#", ";", "[")):
            settings.setdefault(name.strip(), value.strip())
    return settings


def parse_wiredtiger(text: str) -> dict[str, str]:
    """Read configurations of WiredTiger, one in a line: `a=1,b=(c=2)` gives a and b.c; the first of several counts."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        parents: list[str] = []
        for name, value, mark in re.findall(r'([\w.]+)=("[^"]*"|\[[^]]*\]|[^,()\[\]]*)([(),]*)', f"{line.strip()},"):
            if "(" in mark:
                parents.append(name)
            elif value or mark:
                settings.setdefault(".".join([*parents, name]), value.strip('"'))
            for _ in range(mark.count(")")):
                if parents:
                    parents.pop()
    return settings


#: By the name that specs use.
ANSWER_PARSERS: dict[str, Callable[[str], dict[str, str]]] = {
    "pairs": parse_pairs,
    "table": parse_table,
    "json": parse_json,
    "ini": parse_ini,
    "wiredtiger": parse_wiredtiger,
}

"""Lists the settings of WiredTiger for `knobscope introspect wiredtiger --settings`: wiredtiger.py SOURCE.

They are those of `wiredtiger_open` and of `WT_SESSION.create` in dist/api_data.py of its source: names, types, ranges
and defaults. A setting in brackets, as `wait` of `checkpoint`, is named checkpoint.wait here.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "dist"))
import api_data  # noqa: E402 - it is in the source

_CONTEXTS = {"-C": "connection", "-T": "table"}
_SHIFTS = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def count_bytes(text: str) -> int | None:
    """Return the number in 10TB or -1, None in another text."""
    match = re.fullmatch(r"(-?[0-9]+)([KMGTP]?)B?", str(text), re.IGNORECASE)
    return int(match[1]) << _SHIFTS[match[2].upper()] if match else None


def list_settings(configs: list[Any], option: str, *outer: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of a method, those in brackets one by one; `option` of wtperf passes them."""
    for config in configs:
        names = (*outer, config.name)
        if config.subconfig:
            yield from list_settings(config.subconfig, option, *names)
            continue
        flags = config.flags
        kind = "choice" if "choices" in flags and flags.get("type") != "list" else flags.get("type")
        number = count_bytes(config.default)
        if kind is None:
            kind = "int" if {"min", "max"} & flags.keys() or number is not None else "text"
        row: dict[str, Any] = {"name": ".".join(names), "type": kind, "context": _CONTEXTS[option]}
        if kind == "int":
            # WiredTiger's own ends of a number that states none
            ends = [count_bytes(flags.get("min", 0)), count_bytes(flags.get("max", 2**63 - 1))]
            row |= {"default": number, "min": ends[0], "max": ends[1]}
        else:
            row |= {"default": config.default}
        if kind == "choice":
            row["values"] = flags["choices"]
        if flags.get("undoc"):
            row["context"] = "undocumented"
        if outer:
            row["writing"] = {"argv": [option, "=(".join(names) + "={value}" + ")" * len(outer)]}
        if option == "-C":
            row["readable"] = False
        yield row


def main() -> None:
    """Print the version, and a line for each setting."""
    release = dict(
        re.findall(
            r"^WIREDTIGER_VERSION_(MAJOR|MINOR|PATCH)=(\d+)", (SOURCE / "RELEASE_INFO").read_text(), re.MULTILINE
        )
    )
    print(json.dumps({"version": ".".join(release[part] for part in ("MAJOR", "MINOR", "PATCH"))}))
    methods = {"wiredtiger_open": "-C", "WT_SESSION.create": "-T"}
    rows: dict[str, dict[str, Any]] = {}
    for method, option in methods.items():
        for row in list_settings(api_data.methods[method].config, option):
            rows.setdefault(row["name"], row)
    print(*(json.dumps(row) for row in rows.values()), sep="\n")


if __name__ == "__main__":
    main()

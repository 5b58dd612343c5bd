"""How well do text, code and pairs of runs together find the knobs that steer I/O?

Run `knobscope io-knobs STUDY --measure --json FILE` for studies of several DBMSs, and then
`python benchmarks/io_evidence.py FILE ...`. What a change of I/O counts, and none, in log odds, is learned from the
other DBMSs alone (the shares of marked and other knobs that changed it, with half a knob added to each), and then
applied to each DBMS, which is so kept apart. Marks are the mechanisms of specs and catalogues.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from knobscope.statistics.io_responses import compare_with_marks

Knobs = dict[str, dict[str, Any]]  # of all cases of a DBMS


def read(path: Path) -> dict[str, Any]:
    """Return knobs, which of them were tried and which are related, and the cost, of all cases in a file."""
    cases = json.loads(path.read_text())["measured"]
    values = [value for case in cases.values() for value in case["values"] if value["verdict"] != "failed"]
    return {
        "dbms": next(iter(cases)).partition("/")[0],
        "knobs": next(iter(cases.values()))["knobs"],
        "tried": {value["knob"] for value in values},
        "related": {value["knob"] for value in values if value["verdict"] == "related"},
        "runs": sum(case["runs"] for case in cases.values()),
        "minutes": sum(case["seconds"] for case in cases.values()) / 60,
        "false": sum(case["false_alarms"] for case in cases.values()),
        "defaults": sum(case["comparisons_of_default"] for case in cases.values()),
    }


def learn(others: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the log odds of a change and of none."""
    counts = {(marked, related): 0.5 for marked in (True, False) for related in (True, False)}
    for other in others:
        for knob in other["tried"]:
            counts[other["knobs"][knob]["is_marked"], knob in other["related"]] += 1
    share = {marked: counts[marked, True] / (counts[marked, True] + counts[marked, False]) for marked in (True, False)}
    return math.log(share[True] / share[False]), math.log((1 - share[True]) / (1 - share[False]))


def main() -> None:
    """Print a row for each DBMS: by text and code, by runs alone, by all of it."""
    studies = [read(Path(name)) for name in sys.argv[1:]]
    print(f"{'':12} knobs tried runs  min   change  none   by text and code   by runs alone   together     default")
    for study in studies:
        change, none = learn([other for other in studies if other["dbms"] != study["dbms"]])
        marks = {name: knob["is_marked"] for name, knob in study["knobs"].items()}
        odds = {name: -math.inf if knob["texts"] is None else knob["texts"] for name, knob in study["knobs"].items()}
        evidence = {name: change if name in study["related"] else none for name in study["tried"]}
        ways = {
            "texts": {name: value > 0 for name, value in odds.items()},
            "runs": {name: name in study["related"] for name in study["tried"]},
            "together": {name: value + evidence.get(name, 0.0) > 0 for name, value in odds.items()},
        }
        scores = [compare_with_marks(verdicts, marks) for verdicts in ways.values()]
        shown = "  ".join(f"{score.precision or 0:7.2f} {score.recall or 0:5.2f}" for score in scores)
        head = f"{study['dbms']:12} {len(marks):5} {len(study['tried']):5} {study['runs']:4} {study['minutes']:5.1f}"
        print(f"{head}  {change:5.2f} {none:6.2f}  {shown}   {study['false']} of {study['defaults']}")


if __name__ == "__main__":
    main()

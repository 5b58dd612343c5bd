"""One short run of a shipped DBMS spec: loaded, started, read back, measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms, shipped_generator, shipped_workload

from knobscope.specs import YCSB, Dbms, Value, find_path, find_program
from knobscope.watch.interface import ProbeName

#: Two seconds, so that an interval is a second long: a busy machine may be late by half of one.
SHORT = {"records": 500, "threads": 2, "warmup_s": 1, "measure_s": 2}


def read_dbms(name: str) -> Dbms:
    """The shipped spec; the test is skipped when a program or file that it needs is not installed."""
    dbms = shipped_dbms(name)
    missing = [wanted for wanted in dbms.programs.values() if find_program(wanted) is None]
    missing += [wanted for wanted in dbms.paths.values() if find_path(wanted) is None]
    if missing:
        pytest.skip(f"no {missing[0].find[-1]}; {missing[0].remedy}")
    return dbms


def run_once(
    dbms: Dbms,
    configuration: Mapping[str, Value],
    scratch: Path,
    workload: str = "ycsb-a",
    probes: Sequence[ProbeName] = (),
    **changes: object,
) -> dict[str, Any]:
    """Load a data directory, measure one run of it, and return the record; nothing of the run may be left."""
    spec = shipped_workload(workload, **(SHORT | changes))
    generator = None if spec.generator == YCSB else shipped_generator(spec.generator)
    return load_and_measure(dbms, spec, scratch, dict(configuration), probes=probes, generator=generator)


def assert_whole(record: dict[str, Any], configuration: Mapping[str, Value], dbms: Dbms) -> None:
    """The run counts, each knob was read back, and no operation failed."""
    run = record["run"]
    assert run["status"] == "ok", run
    assert run["operations"] > 0
    assert run["failed_operations"] == 0
    effective = {row["knob"]: row["effective"] for row in record["effective_values"]}
    assert set(effective) == set(configuration)
    assert [name for name in configuration if dbms.knobs[name].readable and effective[name] is None] == []


def unusual_values(dbms: Dbms, *without: str) -> dict[str, Value]:
    """A value other than the default for every knob, as far as their constraints allow."""
    defaults = {name: knob.default for name, knob in dbms.knobs.items()}
    chosen: dict[str, Value] = {}
    for name, knob in dbms.knobs.items():
        options = knob.possible_values or [*(knob.range or []), *knob.special]
        for value in options:
            tried = {**defaults, **chosen, name: value, "threads": SHORT["threads"], "records": SHORT["records"]}
            held = all(one.requirement is None or one.requirement.holds(tried) for one in dbms.knobs.values())
            if name not in without and value != knob.default and held:
                chosen[name] = value
                break
    return chosen

"""One short run of a shipped DBMS spec: loaded, started, read back, measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from knobscope.devices import find_block_device
from knobscope.specs import YCSB, Dbms, Generator, Value, Workload, find_path, find_program, read_spec
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import prepare_snapshot
from knobscope.watch import open_watch
from knobscope.watch.interface import ProbeName

ROOT = Path(__file__).parents[2]
#: Two seconds, so that an interval is a second long: a busy machine may be late by half of one.
SHORT = {"records": 500, "threads": 2, "warmup_s": 1, "measure_s": 2}


def read_dbms(name: str) -> Dbms:
    """The shipped spec; the test is skipped when a program or file that it needs is not installed."""
    dbms = read_spec(ROOT / f"specs/dbms/{name}.yaml", Dbms, None)[1]
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
    spec = read_spec(ROOT / f"specs/workloads/{workload}.yaml", Workload, None)[1].model_copy(update=SHORT | changes)
    generator = None
    if spec.generator != YCSB:
        generator = read_spec(ROOT / f"specs/generators/{spec.generator}.yaml", Generator, None)[1]
    load = {name: value for name, value in configuration.items() if dbms.knobs[name].apply == "load"}
    snapshot = prepare_snapshot(dbms, spec, load, scratch, generator)
    prefer: Literal["bpf", "procfs"] = "bpf" if probes else "procfs"
    with open_watch(find_block_device(scratch), 4096, "process", prefer, probes) as watch:
        if watch.reason or (probes and watch.missing_probes):
            pytest.skip(str(watch.reason or dict(watch.missing_probes)))
        record = measure_run(Bench(dbms, spec, scratch, watch, generator), "run", configuration, snapshot)
    assert list((scratch / "runs").iterdir()) == []
    return record


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

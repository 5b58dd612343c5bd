"""Writes the study to run next: the running version, its settings as baseline, and the knobs that are at fault."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from knobscope.commands.attach.conclusion import MECHANISMS
from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.diagnosis import Diagnosis
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.settings import choose_knobs, parse_setting
from knobscope.devices import find_block_device
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.specs import Dbms, Device, Value, load_study, read_spec
from knobscope.specs.reading.base import check_name
from knobscope.watch.files import mounts_on

_MOST_KNOBS = 8
_WRITE_SHARE = 0.1  # of the requests, from which the workload of the study writes, too
_BASELINE = "The baseline has the settings in force that differ from the spec's defaults."
_NO_BASELINE = (
    "There is no baseline: no known setting that a study can state differs from the spec's defaults. Without --connect "
    "only those on the server's command line are known."
)


def check_place(file: Path, running: Running) -> None:
    """Raise UserError where no study can be written to a file: found out before anything is watched."""
    if running.dbms is None or running.dbms.connection is None:
        raise UserError(f"--write-study: no spec says how {running.program} is started and loaded")
    specs = file.absolute().parent.parent
    if file.suffix != ".yaml" or not (specs / "dbms" / f"{running.dbms.name}.yaml").is_file():
        raise UserError(
            f"--write-study: found {file}; expected a .yaml file in a folder next to dbms/{running.dbms.name}.yaml, "
            "such as specs/studies"
        )
    try:
        check_name(file.stem)
    except ValueError as problem:
        raise UserError(f"--write-study: found the name {file.stem!r}; expected {problem}") from problem


def write_study(file: Path, diagnosis: Diagnosis, root: Path) -> list[Path]:
    """Write a study, and a device spec where none is on this device; return the files. SpecErrors: it is not valid.

    Nothing is written where no knob controls the bottleneck.
    """
    dbms = diagnosis.subject.running.dbms
    assert dbms is not None  # noqa: S101 - check_place saw to it
    mechanisms = MECHANISMS.get(diagnosis.conclusion.at_fault, ())
    knobs = [name for name, _ in choose_knobs(dbms, mechanisms, diagnosis.subject.settings)][:_MOST_KNOBS]
    if not knobs:
        return []
    written = [file]
    device, text = _choose_device(file, diagnosis, root)
    if text is not None:
        path = file.absolute().parent.parent / "devices" / f"{device}.yaml"
        written.append(path if file.is_absolute() else Path(os.path.relpath(path)))  # as the user writes paths
        write_text(written[-1], text)
    write_text(file, _render(file.stem, dbms, diagnosis, device, knobs))
    load_study(file, root, runnable=False)
    return written


def _render(name: str, dbms: Dbms, diagnosis: Diagnosis, device: str, knobs: Sequence[str]) -> str:
    baseline, left_out = _choose_baseline(dbms, diagnosis.subject.settings)
    reads, writes = (diagnosis.facts.operations[op].per_s for op in ("read", "write"))
    workload = "ycsb-a" if writes >= _WRITE_SHARE * (reads + writes) else "ycsb-c"
    fault = diagnosis.conclusion.at_fault.replace("_", " ")
    content: dict[str, Any] = {
        "name": name,
        "description": f"Which knobs help {diagnosis.subject.running.title} where it waits ({fault})?",
        "dbms": [dbms.name],
        "devices": [device],
        "workloads": {workload: None},
        "knobs": {dbms.name: dict.fromkeys(knobs)},
        **({"baseline": {dbms.name: baseline}} if baseline else {}),
    }
    head = [
        "yaml-language-server: $schema=../schemas/study.json",
        "",
        f"Written by `knobscope attach` on seeing {diagnosis.describe_server()}:",
        diagnosis.conclusion.headline,
        f"The load is {workload}, not that of the server; choose records and threads like its own.",
        _BASELINE if baseline else _NO_BASELINE,
        *(f"Left out, since the spec does not allow the value: {setting}" for setting in left_out),
    ]
    # On one line each: what a process has in its arguments or names must not become a key of the study.
    comment = "".join(f"# {' '.join(line.split())}".rstrip() + "\n" for line in head)
    return comment + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def _choose_baseline(dbms: Dbms, settings: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
    """Return the settings in force that differ from the spec's defaults, and those that a study cannot state."""
    baseline: dict[str, Value] = {}
    left_out = []
    for name, text in settings.items():
        if name not in dbms.knobs or dbms.part_of(name) is not None:
            continue
        value = parse_setting(dbms, name, text)
        if value is None:
            left_out.append(f"{name} = {text}")
        elif value != dbms.knobs[name].default:
            baseline[name] = value
    return baseline, left_out


def _find_point(data: DataPlace) -> Path:
    """Return where the file system of the server's data is mounted, by a name that is one outside of a container, too.

    UserError: it is mounted in the container alone.
    """
    points = [mount.point for mount in mounts_on(data.block)]
    if not points:
        raise UserError(
            f"--write-study: the data lies on {data.block.name}, which is mounted in the container alone; expected a "
            "mount that studies can use"
        )
    around = [point for point in points if data.seen.is_relative_to(point)]
    return max(around or points, key=lambda point: len(point.parts) if around else -len(point.parts))


def _choose_device(file: Path, diagnosis: Diagnosis, root: Path) -> tuple[str, str | None]:
    """Return the name of a device spec on the server's device, and what to write where there is none."""
    data = diagnosis.subject.data
    for path in sorted((file.absolute().parent.parent / "devices").glob("*.yaml")):
        device = read_spec(path, Device, None)[1]
        place = None if device.path is None else root / device.path
        with contextlib.suppress(UserError):  # it lies on no block device
            if place is not None and place.is_dir() and find_block_device(place) == data.block:
                return device.name, None
    point = _find_point(data)
    spec = {
        "name": f"{file.stem}-device",
        "description": f"device of {diagnosis.subject.running.title}, {data.block.name}",
        "tier": "auto",
        "path": str(point),
    }
    comment = "# Written by `knobscope attach`. Studies keep their data below .knobscope in this directory.\n"
    return str(spec["name"]), comment + yaml.safe_dump(spec, sort_keys=False, allow_unicode=True)

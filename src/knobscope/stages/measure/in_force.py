"""Whether the values of a configuration are in force: when the load begins, and still when the window is over."""

from collections.abc import Mapping
from pathlib import Path

from knobscope.devices import OpenDevice
from knobscope.generators import Connected
from knobscope.servers import Configuration, Instance, ask_instance, compare_effective
from knobscope.stages.measure.layout import find_layout
from knobscope.stages.measure.validity import RunFailedError
from knobscope.tables import RunRecord


def check_knobs(
    instance: Instance,
    configuration: Configuration,
    connected: Connected,
    scratch: Path,
    layout: Mapping[str, OpenDevice],
    record: RunRecord,
) -> None:
    """Record what is in force; raises RunFailedError when a value is not."""
    effective = {**connected.effective, **ask_instance(instance)}
    effective |= find_layout(instance, effective, scratch, layout)
    record["effective_values"], differing = compare_effective(instance.dbms, configuration, effective)
    disagree = {knob: values for knob, values in connected.disagree.items() if knob in configuration}
    if differing or disagree:
        split = [f"connections disagree: {knob} ({', '.join(values)})" for knob, values in disagree.items()]
        raise RunFailedError("invalid", "not in force: " + ", ".join([*differing.values(), *split]))


def check_knobs_again(
    instance: Instance,
    configuration: Configuration,
    answers: Mapping[str, str] | None,
    record: RunRecord,
) -> None:
    """Raise RunFailedError when a value is no longer in force, as after a reload, or where a server tunes itself.

    `answers` are those of a connection after the window; without any, only a DBMS that needs none is asked.
    """
    before = {row["knob"]: row["effective"] for row in record["effective_values"] if row["effective"] is not None}
    now = {**before, **(answers or {}), **ask_instance(instance)}
    record["effective_values"], differing = compare_effective(instance.dbms, configuration, now)
    if differing:
        raise RunFailedError("invalid", "no longer in force when the window was over: " + ", ".join(differing.values()))

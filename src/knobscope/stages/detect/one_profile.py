"""What one profile of one configuration says of a device, without a study: the rules that look at nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from knobscope.specs import Rule, StudySpecs, read_shipped_rule
from knobscope.specs.models.study import Study
from knobscope.stages.detect.database import create_schema
from knobscope.stages.detect.rules import run_rules
from knobscope.tables import DeviceProfile, IoProfileRow, insert_rows
from knobscope.tables.block_layer import IoLatencyRow, QueueDepthRow
from knobscope.tables.calls import IoModeRow
from knobscope.tables.detection import FindingRow

#: Rules that look at one configuration.
_RULES = ("default_profile",)
#: Columns of `runs` that a profile has, under their names.
_FACTS = ("monitor", "lost_events", "unattributed_share", "machine_cpu_share")


class _Needed(TypedDict):
    command: list[str]
    monitor: str
    duration_s: float
    io_profile: list[IoProfileRow]
    queue_depth: list[QueueDepthRow]


class WatchedProfile(_Needed, total=False):
    """What is judged of a profile that `knobscope watch --json` wrote."""

    scope: str
    unit: int
    lost_events: int | None
    unattributed_share: float | None
    machine_cpu_share: float | None
    cpu_s: float | None
    io_latency: list[IoLatencyRow]
    io_modes: list[IoModeRow]


def judge_profile(profile: WatchedProfile, device: DeviceProfile) -> list[FindingRow]:
    """Return the findings about a watched command, on a device that was characterised."""
    import duckdb

    command = Path(str(profile["command"][0])).name
    case = {"dbms": command, "device": device["device"], "workload": command}
    run = {
        **case,
        **{name: profile.get(name) for name in _FACTS},
        "run_id": "watched", "block_id": "watched", "phase": "sweep", "status": "ok", "is_sentinel": True,
        "window_s": profile["duration_s"],
        # Nobody counted operations: a second is one, so that the rule knows CPU time per second.
        "cpu_s": profile.get("cpu_s"), "operations": profile["duration_s"], "throughput_ops": 1.0,
    }  # fmt: skip
    with duckdb.connect() as connection:
        create_schema(connection)
        insert_rows(connection, "runs", [run])
        insert_rows(connection, "cases", [{**case, "dedicated": profile.get("scope") == "device"}])
        tables: dict[str, Sequence[Mapping[str, Any]]] = {
            "io_profile": profile["io_profile"],
            "io_latency": profile.get("io_latency", []),
            "io_modes": profile.get("io_modes", []),
            "queue_depth": profile["queue_depth"],
        }
        for table, rows in tables.items():
            insert_rows(connection, table, [{**row, "run_id": "watched"} for row in rows])
        if has_other_unit(profile, device):  # then nobody knows how many writes fill the device's units in part
            connection.execute("UPDATE io_profile SET aligned_requests = NULL")
        insert_rows(connection, "device_profile", [device])
        curves = [{**point, "device": device["device"]} for point in device.get("curves", [])]
        insert_rows(connection, "device_curve", curves)
        return run_rules(connection, _specs({name: read_shipped_rule(name) for name in _RULES}))


def has_other_unit(profile: WatchedProfile, device: DeviceProfile) -> bool:
    """Whether the device stores in another unit than that whose multiples were counted as aligned."""
    unit = device.get("write_unit_bytes")
    return unit is not None and profile.get("unit") != unit


def _specs(rules: dict[str, Rule]) -> StudySpecs:
    """Return the least that rules ask of a study: their thresholds."""
    study = Study(
        name="watched",
        description="one profile",
        dbms=["command"],
        devices=["device"],
        workloads={"command": None},
        knobs={},
        rules=list(rules),
    )
    return StudySpecs(study, {}, {}, {}, rules=rules)

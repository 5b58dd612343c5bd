"""One trial, in namespaces of its own: reads an order (JSON) from its input and writes the outcome to its output."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import Clock
from kinds import KINDS, Kind, Scene, install_other
from outcome import Found, find_lost, find_violations, read_found, read_store
from studies import STUDIES, Study, start_call
from world import World, open_world

_CALL_LIMIT_S = 300
#: A run that is in the store but whose directory entry is not on the device yet is not stored; this long at most.
_SETTLING_S = 0.3


def main() -> int:
    """Carry out the trial that the input orders."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    order = json.load(sys.stdin)
    study = STUDIES[order["study"]]
    reference: Found | None = order.get("reference")
    with open_world(Path(order["folder"]), study, order.get("profile")) as world:
        if reference is None:
            outcome = _run_undisturbed(world, study, is_upgraded=order["study"].endswith("-upgraded"))
        else:
            faults = [(KINDS[kind], random.Random(seed)) for kind, seed in order["faults"]]  # noqa: S311 - no secret
            outcome = _run_disturbed(world, study, faults, reference)
        if outcome["violations"]:
            _keep_logs(world, Path(order["logs"]))
    json.dump(outcome, sys.stdout)
    return 0


def _run_undisturbed(world: World, study: Study, *, is_upgraded: bool) -> dict[str, Any]:
    """Return the outcome of the study itself, with what the others are compared with."""
    environment: dict[str, str] = {}
    if is_upgraded:
        install_other(world, environment)
    code = _call(world, study, "only", environment)
    outcome: dict[str, Any] = {"told": ["nothing"], "exits": [code]}
    if code != 0:
        return outcome | {"violations": [f"the call ends with {code}"]}
    profile = (world.results / "devices" / f"{study.device}.json").read_text(encoding="utf-8")
    content = read_found(world.results) | {"profile": profile}
    failed = [row for row in content["tables"]["runs"] if '"ok"' not in row]
    return outcome | {"violations": failed + _list_left(world, study), "found": content}


def _run_disturbed(
    world: World, study: Study, faults: list[tuple[Kind, random.Random]], reference: Found
) -> dict[str, Any]:
    """Let the faults hit calls of the study, each of which goes on where the last one ended; then call it once more."""
    # A single fault hits anywhere; of several each hits early, so that there is work left for the ones after it.
    latest = reference["duration_s"] * (0.9 if len(faults) == 1 else 0.3)
    clock = Clock(world.folder) if any(kind.needs_clock for kind, _ in faults) else None
    environment: dict[str, str] = {}
    hits: list[_Hit] = []
    violations: list[str] = []
    stored: dict[str, str] = {}  # before the last fault
    call: subprocess.Popen[str] | None = None
    for kind, chance in faults:
        moment = chance.uniform(0.05 / 0.9 * latest, latest)
        if call is None or _wait(call, moment):  # none, or none any more
            violations += _list_outliving(world)
            if hits and world.is_finished():
                violations += find_lost(world.results, stored, _tell(hits))
                world.begin_anew()
                stored = {}
            call = _start_disturbed(world, study, {**environment, **(clock.environment if clock else {})})
            _wait(call, moment)
        violations += find_lost(world.results, stored, _tell(hits))
        stored = read_store(world.results)
        is_last = len(hits) == len(faults) - 1
        hits.append(_hit(Scene(world, study, call, chance, clock, environment), kind, moment, is_last))
        call = call if call.poll() is None else None
    code = _call(world, study, "next", environment)
    violations += [violation for hit in hits for violation in hit.violations]
    violations += [] if code == 0 else [f"the next call ends with {code}"]
    violations += find_lost(world.results, stored, _tell(hits))
    violations += find_violations(world.results, reference)
    violations += _list_left(world, study)
    return {
        "told": [hit.told for hit in hits],
        "moments_s": [round(hit.moment, 2) for hit in hits],
        "exits": [hit.exit_code for hit in hits],
        "violations": violations,
    }


def _start_disturbed(world: World, study: Study, environment: dict[str, str]) -> subprocess.Popen[str]:
    with (world.folder / "first.log").open("a", encoding="utf-8") as output:
        return start_call(study, world.project, world.temporary, output, environment)


@dataclass(frozen=True)
class _Hit:
    """A fault: what happened, when (seconds), and how its call ended (None: not yet)."""

    told: str
    moment: float
    exit_code: int | None
    violations: list[str]


def _tell(hits: list[_Hit]) -> str:
    """Return what happened so far: a run that was damaged may be measured again after a later fault only."""
    return "; ".join(hit.told for hit in hits)


def _hit(scene: Scene, kind: Kind, moment: float, is_last: bool) -> _Hit:
    """Inject a fault, and wait until the call and all its processes have ended, unless it can meet the next fault."""
    world, call = scene.world, scene.call
    time.sleep(_SETTLING_S)
    violations = []
    with kind.inject(scene) as description:
        if is_last or not kind.is_survived:
            if not _wait(call, _CALL_LIMIT_S):
                violations.append("the disturbed call does not end")
                world.kill_all()
            violations += _list_outliving(world)
            world.kill_all()
    return _Hit(description, moment, call.poll(), violations)


def _list_outliving(world: World) -> list[str]:
    """Return, in words, the processes that outlive their call."""
    return [f"process {pid} outlives its call: {line}" for pid, line in world.await_silence().items()]


def _list_left(world: World, study: Study) -> list[str]:
    """Take down the device of the study, which stays until somebody does so, and return what is left then."""
    if study.device != "local-disk":
        command = [sys.executable, "-m", "knobscope", "devices", "down", study.device]
        subprocess.run(command, cwd=world.project, check=True, stdout=subprocess.DEVNULL)
    return [f"left: {leftover}" for leftover in world.list_left()]


def _wait(call: subprocess.Popen[str], seconds: float) -> bool:
    try:
        call.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _call(world: World, study: Study, name: str, environment: dict[str, str]) -> int | None:
    """Call the study until it ends; None when it does not."""
    with (world.folder / f"{name}.log").open("w", encoding="utf-8") as output:
        call = start_call(study, world.project, world.temporary, output, environment)
        return call.returncode if _wait(call, _CALL_LIMIT_S) else None


def _keep_logs(world: World, target: Path) -> None:
    """Copy what the calls said, and the logs of all jobs, to where they can be looked at."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for log in world.folder.glob("*.log"):
        shutil.copy(log, target)
    if (world.results / "logs").is_dir():
        shutil.copytree(world.results / "logs", target / "logs")


if __name__ == "__main__":
    sys.exit(main())

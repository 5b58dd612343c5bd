"""One trial, in namespaces of its own: reads an order (JSON) from its input and writes the outcome to its output."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from clock import Clock
from kinds import KINDS, Kind, Scene, install_other
from outcome import Found, find_violations, read_found, read_store
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
    with open_world(Path(order["folder"]), study, reference["profile"] if reference else None) as world:
        if reference is None:
            outcome = _run_undisturbed(world, study, is_upgraded=order["study"].endswith("-upgraded"))
        else:
            chance = random.Random(order["seed"])  # noqa: S311 - moments and files, no secret
            outcome = _run_disturbed(world, study, KINDS[order["kind"]], chance, reference)
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
    outcome: dict[str, Any] = {"told": "nothing", "first_exit": code}
    if code != 0:
        return outcome | {"violations": [f"the call ends with {code}"]}
    profile = (world.results / "devices" / f"{study.device}.json").read_text(encoding="utf-8")
    found = read_found(world.results) | {"profile": profile}
    failed = [row for row in found["tables"]["runs"] if '"ok"' not in row]
    return outcome | {"violations": failed + _list_left(world, study), "found": found}


def _run_disturbed(world: World, study: Study, kind: Kind, chance: random.Random, reference: Found) -> dict[str, Any]:
    clock = Clock(world.folder) if kind.needs_clock else None
    environment: dict[str, str] = {}
    with (world.folder / "first.log").open("w", encoding="utf-8") as output:
        call = start_call(study, world.project, world.temporary, output, clock.environment if clock else {})
        moment = chance.uniform(0.05, 0.9) * reference["duration_s"]
        _wait(call, moment)
        stored = read_store(world.results)
        time.sleep(_SETTLING_S)
        with kind.inject(Scene(world, study, call, chance, clock, environment)) as told:
            violations = [] if _wait(call, _CALL_LIMIT_S) else ["the disturbed call does not end"]
            if violations:
                world.kill_all()
            violations += [f"process {pid} outlives its call: {line}" for pid, line in world.await_silence().items()]
            world.kill_all()
    code = _call(world, study, "next", environment)
    violations += [] if code == 0 else [f"the next call ends with {code}"]
    violations += find_violations(world.results, stored, reference, told)
    violations += _list_left(world, study)
    return {"told": told, "moment_s": round(moment, 2), "first_exit": call.returncode, "violations": violations}


def _list_left(world: World, study: Study) -> list[str]:
    """Take down the device of the study, which stays until somebody does so, and return what is left then."""
    if study.device != "here":
        command = [sys.executable, "-m", "knobscope", "devices", "down", study.device]
        subprocess.run(command, cwd=world.project, check=True, stdout=subprocess.DEVNULL)
    return [f"left: {one}" for one in world.list_left()]


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

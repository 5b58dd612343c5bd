"""Injects faults into small studies at random and looks whether anything is lost, left behind, or blamed on a knob.

Run `python benchmarks/faults --trials 200 --seed 1` as root. Every trial has a file system, temporary directory, shared
memory, and control groups of its own, so that nothing it does reaches the machine, and whatever stays can be seen. One
call of a study is disturbed at a random moment; then the study is called again. With `--faults 10` ten faults come one
after the other, into calls that each go on with what the one before left. The trial fails unless

- the last call, which nothing disturbs, finishes, and the disturbed ones ended within their limit of time;
- every run that was stored before the fault still is, unchanged, and was measured once;
- runs and tables are those of an undisturbed study, as far as they are no measured figures;
- no run has failed: what came from outside is no configuration's fault;
- no process, control group, mount, loop device, shared memory or temporary file stays.

Prints a line per trial and a table by kind of fault; ends with exit code 1 when a trial failed. Trials that `--out`
holds are not repeated, so that a call that was cut goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kinds import KINDS
from studies import STUDIES

#: Kind of the trial that nothing disturbs; the others are compared with it.
UNDISTURBED = "nothing"
_TRIAL_LIMIT_S = 900
#: Trials that run at the moment; when we are ended before them, so are they, and take everything down.
_RUNNING: set[subprocess.Popen[str]] = set()
_ENDED = threading.Event()
Outcome = dict[str, Any]
Options = argparse.Namespace


@dataclass(frozen=True)
class Trial:
    """A study with the faults that hit its calls, one each: their kinds and seeds. Without any it is a reference."""

    number: int | str
    study: str
    faults: tuple[tuple[str, int], ...]

    @property
    def key(self) -> tuple[int | str, str]:
        """What its outcome is found by."""
        return self.number, self.study

    @property
    def reference(self) -> str:
        """The undisturbed study that it must come to."""
        return next((result for kind, _ in self.faults if (result := KINDS[kind].result)), self.study)


def main() -> int:
    """Carry out what is missing, print, and return the exit code."""
    options = _parse()
    if os.geteuid() != 0:
        print("benchmarks/faults: loop devices and namespaces need root", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcomes = _read(options.out)
    trials = _draw(options)
    references = list(dict.fromkeys(trial.reference for trial in trials))
    _carry_out_all(outcomes, [Trial(UNDISTURBED, study, ()) for study in references], options)
    for study in references:
        if outcomes[UNDISTURBED, study]["violations"]:
            print(f"the undisturbed study of {study} does not do what it should", file=sys.stderr)
            return 1
    _carry_out_all(outcomes, trials, options)
    trial_outcomes = [outcomes[trial.key] for trial in trials]
    print(_tabulate(trial_outcomes))
    return int(any(outcome["violations"] for outcome in trial_outcomes))


def _carry_out_all(outcomes: dict[Any, Outcome], trials: list[Trial], options: Options) -> None:
    """Carry out those trials that have no outcome, some of them at a time."""
    missing = [trial for trial in trials if trial.key not in outcomes]
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(_carry_out, outcomes, trial, options) for trial in missing]
        try:
            for future in as_completed(running):
                future.result()
        except BaseException:
            _ENDED.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(_RUNNING):
                process.terminate()
            raise


def _draw(options: Options) -> list[Trial]:
    """Return the trials. The kinds of first faults come in turn, in random order, so that a short form has many.

    Further faults of a trial are of other kinds that its study can meet, those first that came least often so far.
    """
    chance = random.Random(options.seed)  # noqa: S311 - trials, no secret
    possible = [(study, kind) for kind in options.kinds for study in options.studies if KINDS[kind].fits(study)]
    first: list[tuple[str, str, int]] = []
    while len(first) < options.trials:
        order = list(dict.fromkeys(kind for _, kind in possible))
        chance.shuffle(order)
        for kind in order:
            study = chance.choice([study for study, candidate in possible if candidate == kind])
            first.append((study, kind, chance.getrandbits(32)))
    trials = []
    drawn: Counter[str] = Counter()
    for number, (study, kind, seed) in enumerate(first[: options.trials], start=1):
        other_kinds = [other_kind for candidate, other_kind in possible if candidate == study and other_kind != kind]
        chance.shuffle(other_kinds)
        other_kinds.sort(key=lambda other_kind: drawn[other_kind])
        faults = (
            (kind, seed),
            *((other_kind, chance.getrandbits(32)) for other_kind in other_kinds[: options.faults - 1]),
        )
        drawn.update(kind for kind, _ in faults)
        trials.append(Trial(number, study, faults))
    return trials


def _carry_out(outcomes: dict[Any, Outcome], trial: Trial, options: Options) -> None:
    """Carry out one trial in namespaces of its own, in a program of its own; note and print its outcome."""
    order: dict[str, Any] = {"study": trial.study, "faults": trial.faults, "logs": str(_logs(options, trial))}
    if options.profile:
        order["profile"] = options.profile.read_text(encoding="utf-8")
    if trial.faults:
        order["reference"] = outcomes[UNDISTURBED, trial.reference]["found"]
        order["profile"] = order["reference"]["profile"]
    begin = time.monotonic()
    command = ["unshare", "--mount", "--ipc", "--net", "--propagation", "private", sys.executable]
    with tempfile.TemporaryDirectory(prefix="knobscope-faults-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        order["folder"] = folder
        code, output, complained = _run([*command, str(Path(__file__).with_name("trial.py"))], json.dumps(order))
    if _ENDED.is_set():
        return
    outcome: Outcome = {"told": [], "exits": [], "violations": [f"the trial itself failed:\n{complained}"]}
    if code == 0:
        outcome = json.loads(output)
    outcome |= {"trial": trial.number, "study": trial.study, "faults": trial.faults}
    outcome["seconds"] = round(time.monotonic() - begin, 1)
    outcomes[trial.key] = outcome
    with options.out.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(outcome)}\n")
    verdict = "; ".join(outcome["violations"]) or "held"
    print(
        f"{trial.number}: {trial.study}, {'; '.join(outcome['told'])}: {verdict} ({outcome['seconds']:.0f} s)",
        flush=True,
    )


def _run(command: list[str], order: str) -> tuple[int, str, str]:
    """Run a trial, and return its exit code, its output, and what it complained of."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        _RUNNING.add(process)
        try:
            output, complained = process.communicate(order, _TRIAL_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            output, complained = process.communicate()
        finally:
            _RUNNING.discard(process)
    return process.returncode, output, complained


def _logs(options: Options, trial: Trial) -> Path:
    """Return where a trial that fails leaves what the calls said."""
    return Path(f"{options.out.resolve()}.logs", f"{trial.number}-{trial.study}")


def _read(file: Path) -> dict[Any, Outcome]:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    outcomes = [json.loads(line) for line in lines if line.endswith("}")]  # the last may have been cut
    return {(outcome["trial"], outcome["study"]): outcome for outcome in outcomes}


def _tabulate(outcomes: list[Outcome]) -> str:
    """Return a Markdown table: by kind, how many faults there were, in trials that held, and in calls that finished."""
    rows = ["| fault | number | in trials that held | the disturbed call finished, too |", "|---|---|---|---|"]
    faults = [
        (kind, not outcome["violations"], code)
        for outcome in outcomes
        for (kind, _), code in zip_longest(outcome["faults"], outcome["exits"])
    ]
    for kind in [*sorted({kind for kind, *_ in faults}), "all"]:
        of_kind = [fault for fault in faults if kind in (fault[0], "all")]
        passed, finished = sum(fault[1] for fault in of_kind), sum(fault[2] == 0 for fault in of_kind)
        rows.append(f"| {kind} | {len(of_kind)} | {passed} | {finished} |")
    return "\n".join(rows)


def _parse() -> Options:
    parser = argparse.ArgumentParser(prog="benchmarks/faults", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--faults", type=int, default=1, help="faults of a trial, one call after the other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--studies", nargs="+", choices=sorted(STUDIES), default=list(STUDIES), metavar="STUDY")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    parser.add_argument("--profile", type=Path, help="profile of the shipped device, which is characterised else")
    parser.add_argument("--out", type=Path, default=Path("results/faults.jsonl"), help="JSON lines, one per trial")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

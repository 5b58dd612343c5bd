"""Scores the probe of waits: on threads whose waits are known, and by what servers say of theirs.

Run as root from the checkout, on a quiet machine:

    python benchmarks/waits.py cases [--seconds 2] [--directory .]
    python benchmarks/waits.py servers [--seconds 10] [--device nvme-consumer] [DBMS...]

`cases` runs benchmarks/waits.c with each step in 1 to 64 threads. The second opinion is the kernel's own account of
each thread (schedstat): time on a processor or in its queue, and what is left, blocked in the one thing that the thread
does. A case is right when both are within 5 % of that account, .5 ms per second, or 10 us per step, and all time of
each thread adds up to its life (99 to 101 %). The kernel's account begins when the thread is put into a queue, a little
later than its wake-up; and where an idle processor takes it, the time in the queue counts as time on the processor.

`servers` asks PostgreSQL and MariaDB on a modelled device what their sessions wait for, a hundred times a second, while
the probe watches them (wait_opinions.py). The shares of flush and lock should be within 10 points of each other. Needs
Debian's package postgresql-15-pg-wait-sampling.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from wait_opinions import (
    CATEGORIES,
    MARIADB_OPTIONS,
    POSTGRESQL_OPTIONS,
    Opinion,
    Sampled,
    open_mariadb,
    open_postgresql,
)

from knobscope.devices import find_block_device, load_device, open_locked, take_down
from knobscope.specs import Dbms, Generator, Value, Workload, read_spec
from knobscope.stages.measure import Bench, measure_run
from knobscope.stages.prepare import load_values_of, prepare_snapshot
from knobscope.watch import Watch, gate, open_watch

ROOT = Path(__file__).resolve().parents[1]
_SOURCE = Path(__file__).with_name("waits.c")
_FILE_MIB = 64
_PAUSE_US = 100_000  # that each thread sleeps at its end
_DURABLE = ("flush", "write", "journal")
#: Step -> reasons of its blocked time.
EXPECTED: Mapping[str, tuple[str, ...]] = {
    "cpu": (),
    "sleep": ("timer",),
    "read": ("read", "lock"),
    "write": ("write", "lock"),
    "writeback": ("write", "lock"),
    "fsync": (*_DURABLE, "lock"),
    "fault": ("fault", "lock"),
    "pipe": ("timer",),
    "lock": ("timer", "lock"),
    "group": (*_DURABLE, "lock"),
    "aio": ("read", "lock"),
    "uring": ("read", "lock"),
}
THREADS = (1, 4, 16, 64)
_OWN = ("cpu", "runnable", "preempted")


@dataclass
class Case:
    """Sums over the threads of a case, in us: what the kernel accounts for and what the probe found."""

    name: str
    steps: int = 0
    lived: float = 0.0
    computed: float = 0.0
    queued: float = 0.0
    wall: float = 0.0
    found_computed: float = 0.0
    found_queued: float = 0.0
    expected: float = 0.0
    through: float = 0.0
    lock: float = 0.0
    adds_up: bool = True

    @property
    def blocked(self) -> float:
        """Time that is neither on a processor nor in its queue."""
        return self.lived - self.computed - self.queued

    def list_faults(self) -> list[str]:
        """Return what is further off than allowed."""
        allowed = max(self.lived / 1e6 * 500, 10 * self.steps)
        pairs = {
            "busy": (self.found_computed + self.found_queued, self.computed + self.queued),
            "blocked": (self.expected, self.blocked),
        }
        faults = [name for name, (counted, true) in pairs.items() if abs(counted - true) > max(0.05 * true, allowed)]
        return faults + ([] if self.adds_up else ["sum"])


def read_case(name: str, steps: Mapping[str, tuple[str, ...]], profile: Mapping[str, Any], output: str) -> Case:
    """Return a case; `output`: what the program said."""
    case, figures = Case(name), {int(fields[0]): fields[1:] for fields in map(str.split, output.splitlines())}
    times: dict[int, dict[tuple[str, bool], float]] = defaultdict(lambda: defaultdict(float))
    for row in profile["waits"]:
        times[row["tid"]][row["reason"], row["links"] > 0] += row["time_us"]
    walls = {row["tid"]: row["wall_us"] for row in profile["wait_threads"]}
    for tid, (step, steps_taken, lived, computed, queued) in figures.items():
        own = times[tid]
        case.steps += int(steps_taken)
        case.lived += int(lived) / 1e3
        case.computed += int(computed) / 1e3
        case.queued += int(queued) / 1e3
        case.wall += walls[tid]
        case.found_computed += own["cpu", False]
        case.found_queued += own["runnable", False] + own["preempted", False]
        case.through += sum(time for (_, through), time in own.items() if through)
        case.lock += own["lock", False] + own["lock", True]
        blocked = sum(own[reason, False] for reason in steps[step])
        blocked += sum(time for (reason, through), time in own.items() if through and reason in (*steps[step], *_OWN))
        case.expected += blocked - (_PAUSE_US if "timer" in steps[step] else 0)
        case.adds_up &= abs(sum(own.values()) / walls[tid] - 1) <= 0.01
    return case


def run_case(watch: Watch, binary: Path, file: Path, steps: str, seconds: int) -> tuple[Mapping[str, Any], str]:
    """Return the profile of the program's run, and what it said."""
    with tempfile.NamedTemporaryFile("r") as output:
        arguments = [str(binary), str(seconds), str(file), *steps.split()]
        command = f"exec {shlex.join(arguments)} > {shlex.quote(output.name)}"
        with start_gated(["sh", "-c", command]) as (pid, finish):
            watch.follow([pid])
            watch.begin()
            finish()
            return watch.end(), output.read()


@contextmanager
def start_gated(command: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield the number of a process that runs the command when told, and how to tell it and wait for its end."""
    with subprocess.Popen([sys.executable, "-I", "-S", gate.__file__, "0", *command], stdin=subprocess.PIPE) as process:

        def finish() -> None:
            process.communicate(b"!")
            if process.returncode:
                raise RuntimeError(f"{command} ended with {process.returncode}")

        yield process.pid, finish


def score_cases(args: argparse.Namespace, scratch: Path) -> int:
    """Print the table of cases; returns how many are wrong."""
    binary, file = scratch / "waits", scratch / "data"
    subprocess.run(["cc", "-O2", "-o", str(binary), str(_SOURCE), "-lpthread"], check=True)
    file.write_bytes(os.urandom(1 << 20) * _FILE_MIB)
    print("| case | blocked, s | found | of it through others | lock | cpu, s | found | queue, s | found | wrong |")
    print("|---" * 10 + "|")
    wrong = 0
    with open_watch(find_block_device(scratch), 4096, "device", probes=["waits"]) as watch:
        names = [f"{step}:{number}" for step in EXPECTED for number in THREADS]
        for name in names:
            case = read_case(name, EXPECTED, *run_case(watch, binary, file, name, args.seconds))
            faults = case.list_faults()
            wrong += bool(faults)
            numbers = (case.blocked, case.expected, case.through, case.lock, case.computed, case.found_computed)
            cells = [f"{us / 1e6:.3f}" for us in (*numbers, case.queued, case.found_queued)]
            print(f"| {name} | {' | '.join(cells)} | {', '.join(faults)} |", flush=True)
    print(f"\n{len(names) - wrong} of {len(names)} cases are right.")
    return wrong


@dataclass(frozen=True)
class Load:
    """What a server does while it is asked. `changes`: to the workload; `parameters`: of its generator."""

    dbms: str
    workload: str
    changes: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    knobs: Mapping[str, Value] = field(default_factory=dict)


LOADS = {
    "PostgreSQL, YCSB-A, 1 client": Load("postgresql", "ycsb-a", {"threads": 1}),
    "PostgreSQL, YCSB-A, 8 clients": Load("postgresql", "ycsb-a", {"threads": 8}),
    "PostgreSQL, pgbench on one branch, 8 clients": Load("postgresql", "pgbench-tpcb", {"threads": 8}),
    "PostgreSQL, pgbench reads, 4 clients": Load(
        "postgresql",
        "pgbench-tpcb",
        {"threads": 4, "records": 1_000_000, "memory_mib": 64},
        {"scale": 10, "script": "select-only"},
        {"shared_buffers": 2048},
    ),
    "MariaDB, sysbench writes, 8 clients": Load("mariadb", "sysbench-write", {"threads": 8}),
    "MariaDB, sysbench reads and writes, 8 clients": Load(
        "mariadb", "sysbench-write", {"threads": 8}, {"test": "oltp_read_write"}
    ),
}
OPTIONS = {"postgresql": POSTGRESQL_OPTIONS, "mariadb": MARIADB_OPTIONS}
_WITHIN = 0.1  # of the sessions' time
_COMPARED = ("flush", "lock")


def compare_servers(args: argparse.Namespace, _: Path) -> int:
    """Print what the probe and the servers say; returns how many differ too much from what was sampled."""
    device = load_device(args.device, ROOT)
    print(f"| load | who says so | {' | '.join(CATEGORIES)} | difference |")
    print("|---" * (len(CATEGORIES) + 3) + "|")
    missed = 0
    with ExitStack() as stack:
        stack.callback(take_down, device, ROOT)
        (opened,) = stack.enter_context(open_locked([device], ROOT, "waits"))
        watch = stack.enter_context(open_watch(opened.block, 4096, "device", "bpf", probes=["waits"]))
        for name, load in LOADS.items():
            if load.dbms not in args.dbms:
                continue
            opinions = ask_server(load, args.seconds, opened.directory, watch)
            for number, (who, shares) in enumerate(opinions.items()):
                furthest = max(abs(shares[category] - opinions["probe"][category]) for category in _COMPARED)
                missed += number == 1 and furthest > _WITHIN
                cells = [f"{100 * shares[category]:.1f}" for category in CATEGORIES]
                cells.append(f"{100 * furthest:.1f}" if number else "")
                print(f"| {'' if number else name} | {who} | {' | '.join(cells)} |", flush=True)
    return missed


def ask_server(load: Load, seconds: int, scratch: Path, watch: Watch) -> Mapping[str, Opinion]:
    """Return the shares of the sessions' time by who says so, the probe first."""
    dbms = read_spec(ROOT / f"specs/dbms/{load.dbms}.yaml", Dbms, None)[1]
    assert dbms.lifecycle is not None
    start = [*dbms.lifecycle.start, *OPTIONS[load.dbms]]
    dbms = dbms.model_copy(update={"lifecycle": dbms.lifecycle.model_copy(update={"start": start})})
    workload = read_spec(ROOT / f"specs/workloads/{load.workload}.yaml", Workload, None)[1]
    parameters = {**workload.parameters, **load.parameters}
    workload = workload.model_copy(update={**load.changes, "parameters": parameters, "measure_s": seconds})
    file = ROOT / f"specs/generators/{workload.generator}.yaml"
    generator = read_spec(file, Generator, None)[1] if file.exists() else None
    knobs = {**{knob: spec.default for knob, spec in dbms.knobs.items()}, **load.knobs}
    snapshot = prepare_snapshot(dbms, workload, load_values_of(dbms, knobs), scratch, generator)
    samplers = {"postgresql": partial(open_postgresql, password=snapshot.password), "mariadb": open_mariadb}
    sampled = Sampled(watch, samplers[load.dbms])
    record = measure_run(Bench(dbms, workload, scratch, cast(Watch, sampled), generator), load.dbms, knobs, snapshot)
    if record["run"]["status"] != "ok":
        raise RuntimeError(f"{load.dbms}, {load.workload}: {record['run']['reason']}")
    return sampled.opinions


def main() -> int:
    """Score; returns 1 when something misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cases", "servers"])
    parser.add_argument("dbms", nargs="*", metavar="DBMS", help="with servers: these only (default: both)")
    parser.add_argument("--seconds", type=int, help="of each (default: 2, with servers: 10)")
    parser.add_argument("--directory", type=Path, default=ROOT, help="on the disk to measure on")
    parser.add_argument(
        "--device", default="nvme-consumer", help="with servers: an emulated one (default: %(default)s)"
    )
    args = parser.parse_intermixed_args()
    args.dbms = args.dbms or sorted(OPTIONS)
    args.seconds = args.seconds or (10 if args.what == "servers" else 2)
    with tempfile.TemporaryDirectory(prefix="knobscope-waits-", dir=args.directory) as scratch:
        Path(scratch).chmod(0o711)
        work = {"cases": score_cases, "servers": compare_servers}[args.what]
        return int(work(args, Path(scratch)) > 0)


if __name__ == "__main__":
    sys.exit(main())

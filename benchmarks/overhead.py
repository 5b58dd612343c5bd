"""Measures the fixed overhead of a run, everything but warm-up and window, by DBMS and phase.

Run as `python benchmarks/overhead.py --runs 5` from the checkout, on a quiet machine. Every DBMS loads 1,000 records
once, then they take turns with a run of the default configuration each; the first one of each only warms the page cache
up. DBMSs that are not installed are left out, and named. The runs are watched as in a study.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from knobscope.devices import find_block_device
from knobscope.specs import Dbms, Value, Workload, find_path, find_program, read_spec
from knobscope.stages.measure import Bench, RunStore, measure_run
from knobscope.stages.measure.phases import PHASES
from knobscope.stages.prepare import Snapshot, load_values_of, prepare_snapshot
from knobscope.watch import Watch, open_watch

ROOT = Path(__file__).resolve().parents[1]
#: DBMS -> seconds that its overhead should not exceed.
GOALS = {
    "sqlite": 1.0,
    "rocksdb": 1.0,
    "redis": 1.0,
    "postgresql": 1.0,
    "mysql": 3.0,
    "mariadb": 3.0,
    "cassandra": 10.0,
}
COLUMNS = (*PHASES, "store", "total")


class Bed:
    """A DBMS ready to be measured again and again."""

    def __init__(self, name: str, scratch: Path, watch: Watch) -> None:
        self.dbms = read_spec(ROOT / f"specs/dbms/{name}.yaml", Dbms, None)[1]
        full = read_spec(ROOT / "specs/workloads/ycsb-a.yaml", Workload, None)[1]
        workload = full.model_copy(update={"records": 1000, "threads": 2, "warmup_s": 1, "measure_s": 2})
        self.bench = Bench(self.dbms, workload, scratch, watch)
        self.configuration: dict[str, Value] = {name: knob.default for name, knob in self.dbms.knobs.items()}
        self.store = RunStore(scratch / "store")
        self.snapshot: Snapshot | None = None
        self.seconds: dict[str, list[float]] = {column: [] for column in COLUMNS}

    def missing(self) -> list[str]:
        """Return the programs and files that are not installed."""
        programs = [name for name, wanted in self.dbms.programs.items() if find_program(wanted) is None]
        return programs + [name for name, wanted in self.dbms.paths.items() if find_path(wanted) is None]

    def load(self) -> None:
        """Load the data and measure once, for nothing."""
        values = load_values_of(self.dbms, self.configuration)
        self.snapshot = prepare_snapshot(self.dbms, self.bench.workload, values, self.bench.scratch)
        self.measure()
        self.seconds = {column: [] for column in COLUMNS}

    def measure(self) -> None:
        """Measure a run and note its phases; raises RuntimeError when it fails."""
        assert self.snapshot is not None
        run_id = f"{self.dbms.name}-{len(self.seconds['total'])}"
        record = measure_run(self.bench, run_id, self.configuration, self.snapshot)
        if record["run"]["status"] != "ok":
            raise RuntimeError(f"{self.dbms.name}: {record['run']['reason']}\n{record['run'].get('log_tail', '')}")
        begin = time.monotonic()
        self.store.save(run_id, record)
        spent = {row["phase"]: row["seconds"] for row in record["phases"]} | {"store": time.monotonic() - begin}
        for phase, seconds in spent.items():
            self.seconds[phase].append(seconds)
        self.seconds["total"].append(sum(spent.values()))


def render(beds: Sequence[Bed]) -> str:
    """Return the table: medians by phase, in total with the range, and the goal."""
    lines = [f"| DBMS | {' | '.join(COLUMNS)} | range | goal |", "|---" * (len(COLUMNS) + 3) + "|"]
    for bed in beds:
        cells = [f"{median(bed.seconds[column]):.2f}" if bed.seconds[column] else "–" for column in COLUMNS]
        total, goal = bed.seconds["total"], GOALS[bed.dbms.name]
        verdict = "held" if median(total) <= goal else "missed"
        span = f"{min(total):.2f}–{max(total):.2f}"
        lines.append(f"| {' | '.join([bed.dbms.name, *cells, span])} | {goal:g} {verdict} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; returns 1 when a DBMS misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dbms", nargs="*", default=list(GOALS), metavar="DBMS")
    parser.add_argument("--runs", type=int, default=5, help="runs of each DBMS (default: 5)")
    parser.add_argument("--monitor", choices=["bpf", "procfs"], default="bpf", help="default: bpf")
    parser.add_argument("--scratch", type=Path, default=ROOT, help="directory on the disk to measure on")
    args = parser.parse_args()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="knobscope-overhead-", dir=args.scratch)))
        scratch.chmod(0o711)
        watch = stack.enter_context(open_watch(find_block_device(scratch), 4096, "process", args.monitor))
        beds = [Bed(name, scratch, watch) for name in args.dbms]
        for bed in [bed for bed in beds if bed.missing()]:
            print(f"{bed.dbms.name} is left out: no {', '.join(bed.missing())}", file=sys.stderr)
            beds.remove(bed)
        for bed in beds:
            bed.load()
        for number in range(args.runs):
            for bed in beds:
                bed.measure()
            print(f"{number + 1} of {args.runs} rounds", file=sys.stderr, flush=True)
        print("Seconds, medians:\n")
        print(render(beds))
        return int(any(median(bed.seconds["total"]) > GOALS[bed.dbms.name] for bed in beds))


if __name__ == "__main__":
    sys.exit(main())

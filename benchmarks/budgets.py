"""Does the budget of an operation name the flush where a device's flush is the cause, and nowhere else?

Run as root, on a quiet machine: `python benchmarks/budgets.py [KNOB...] [--pairs 4] [--devices 2ms none]`, 10 minutes
for all. Each knob is measured in interleaved pairs of runs of its two values, on a modelled SATA SSD whose flush takes
2 ms, or which needs none: the kernel takes its cache for durable, and requests no flush. (With 0us the model answers a
flush at once, which still takes the time of the way there.) Units of writes cost nothing. Of the change of the time of
an operation in the server, each reason's share is printed, with a 95 % interval (jackknife over the pairs, Student's
t).

Goals: a knob that saves flushes has 80 % or more of its change in `flush` where a flush takes 2 ms, and 5 % or less
where it takes none. A knob that saves computation only has 80 % or more of it on or for a processor, and 20 % or
less waiting for the device. A knob that changes an operation by less than a tenth is not judged.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml
from scipy.special import stdtrit

from knobscope.devices import load_device, open_device
from knobscope.specs import Device, StudySpecs, Value, load_study
from knobscope.stages.measure import Bench, measure_run
from knobscope.stages.plan.levels import default_configuration
from knobscope.stages.prepare import load_values_of, prepare_snapshot
from knobscope.text.budgets import REASONS, in_server, sum_parts
from knobscope.text.formats import format_micros, loosen_units
from knobscope.watch import open_watch

ROOT = Path(__file__).resolve().parents[1]
STUDY = "budgets"
FLUSHES = ("2ms", "none", "0us")
DEVICE = ("flush", "write", "journal", "read", "fault", "async")
PROCESSOR = ("cpu", "runnable")
MOST, LEAST, LITTLE, WORTH = 0.8, 0.05, 0.2, 0.1


@dataclass(frozen=True)
class Knob:
    """Two values of a knob, the slower one first, and what else the configuration changes of the DBMS's defaults."""

    dbms: str
    name: str
    values: tuple[Value, Value]
    others: tuple[tuple[str, Value], ...] = ()
    saves_flushes: bool = True
    threads: int = 4

    def __str__(self) -> str:
        """Return it as it is named on the command line."""
        return f"{self.dbms}.{self.name}"


_COMMITS = (("synchronous_commit", "on"),)
KNOBS = (
    Knob("postgresql", "synchronous_commit", ("on", "off")),
    Knob("redis", "appendfsync", ("always", "no")),
    Knob("sqlite", "synchronous", ("full", "off"), (("journal_mode", "wal"),), threads=1),
    Knob("mariadb", "sync_binlog", (1, 0), (("log_bin", True), ("innodb_flush_log_at_trx_commit", 0))),
    Knob("postgresql", "jit_above_cost", (0, 100000), _COMMITS, saves_flushes=False),
    Knob("postgresql", "enable_indexscan", (False, True), (("enable_bitmapscan", False), *_COMMITS), False),
)

Budget = Mapping[str, float]  # reason -> microseconds per operation


@dataclass(frozen=True)
class Share:
    """A share of the change of an operation's time, with its 95 % interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it in percent."""
        return f"{self.estimate:.0%} ({self.low:.0%} to {self.high:.0%})"


def share_of(pairs: Sequence[tuple[Budget, Budget]], reasons: Sequence[str]) -> Share:
    """Return the share of reasons in the change over all pairs."""
    parts = [sum(slower[reason] - faster[reason] for reason in reasons) for slower, faster in pairs]
    wholes = [sum(slower.values()) - sum(faster.values()) for slower, faster in pairs]
    estimate, count = sum(parts) / sum(wholes), len(pairs)
    without = [(sum(parts) - part) / (sum(wholes) - whole) for part, whole in zip(parts, wholes, strict=True)]
    error = math.sqrt((count - 1) / count * sum((one - fmean(without)) ** 2 for one in without))
    half = float(stdtrit(count - 1, 0.975)) * error
    return Share(estimate, estimate - half, estimate + half)


def read_specs(knobs: Sequence[Knob], folder: Path) -> StudySpecs:
    """Return the specs of a study of these knobs, those of each DBMS's catalogue among them."""
    settings: dict[str, dict[str, None]] = {}
    for knob in knobs:
        settings.setdefault(knob.dbms, {}).update(dict.fromkeys((knob.name, *dict(knob.others))))
    content = {
        "name": STUDY,
        "description": "Do budgets name the cause?",
        "dbms": list(settings),
        "devices": ["sata-ssd"],
        "workloads": {"ycsb-a": {"records": 2000, "threads": 4, "warmup_s": 0.5, "measure_s": 2}},
        "knobs": settings,
        "watch": ["waits"],
    }
    file = folder / "studies" / f"{STUDY}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    for kind in (ROOT / "specs").iterdir():  # specs are looked for next to the study
        if not (folder / kind.name).exists():
            (folder / kind.name).symlink_to(kind)
    file.write_text(yaml.safe_dump(content))
    return load_study(file, ROOT, runnable=False)


def make_device(flush: str) -> Device:
    """Return the modelled SATA SSD with such a flush, and without units that writes fill in part."""
    content = load_device("sata-ssd", ROOT).model_dump(mode="json")
    content["emulate"]["model"] |= {"flush": "0us" if flush == "none" else flush, "unit": "4KiB", "fill": "0us"}
    return Device.model_validate({**content, "name": f"{STUDY}-flush-{flush}"})


@contextmanager
def measuring(specs: StudySpecs, knob: Knob, device: Device) -> Iterator[Any]:
    """Yield what measures a run of a value, and returns its budget and its operations per second."""
    dbms = specs.dbms[knob.dbms]
    workload = specs.workloads["ycsb-a"].model_copy(update={"threads": knob.threads})
    others = dict(knob.others)
    configuration = default_configuration(dbms, [knob.name, *others], {**others, knob.name: knob.values[0]})
    with ExitStack() as stack:
        opened = stack.enter_context(open_device(device, ROOT, STUDY))
        if device.name.endswith("none"):
            cache = Path("/sys/block", opened.block.name, "queue/write_cache")
            cache.write_text("write through")
            stack.callback(cache.write_text, "write back")  # a loop device would keep it
        watch = stack.enter_context(open_watch(opened.block, 4096, "device", probes=["waits"]))
        bench = Bench(dbms, workload, opened.directory, watch, specs.generators.get(workload.generator))
        snapshot = prepare_snapshot(dbms, workload, load_values_of(dbms, configuration), opened.directory)

        def measure(value: Value, number: int) -> tuple[Budget, float]:
            record = measure_run(bench, f"{knob}-{number}", {**configuration, knob.name: value}, snapshot)
            run = record["run"]
            if run["status"] != "ok":
                raise RuntimeError(f"{knob} = {value}: {run['reason']}")
            operations = (run["throughput_ops"] or math.nan) * (run["waits_s"] or math.nan)
            parts = in_server(sum_parts(record["waits"], record["wait_chains"], operations=operations))
            if not parts:
                raise RuntimeError(f"{knob} = {value}: no waits of threads that serve clients were counted")
            return {part.reason: part.micros for part in parts}, run["throughput_ops"]

        yield measure


def measure_knob(
    specs: StudySpecs, knob: Knob, device: Device, count: int
) -> tuple[list[tuple[Budget, Budget]], float]:
    """Return the budgets of pairs of runs, and how many times as fast the faster value is; a first run warms up."""
    pairs, ratios = [], []
    with measuring(specs, knob, device) as measure:
        measure(knob.values[1], 0)
        for number in range(1, count + 1):
            order = knob.values if number % 2 else knob.values[::-1]
            of_value = {value: measure(value, number) for value in order}
            slower, faster = (of_value[value] for value in knob.values)
            pairs.append((slower[0], faster[0]))
            ratios.append(faster[1] / slower[1])
    return pairs, median(ratios)


def holds(knob: Knob, flush: str, pairs: Sequence[tuple[Budget, Budget]]) -> str:
    """Return whether the goal of a knob holds on a device."""
    before, after = (fmean(sum(pair[side].values()) for pair in pairs) for side in (0, 1))
    if abs(after / before - 1) < WORTH:
        return "not judged"
    share = share_of(pairs, ["flush"]).estimate
    if not knob.saves_flushes:
        is_good = share_of(pairs, PROCESSOR).estimate >= MOST and share_of(pairs, DEVICE).estimate <= LITTLE
    else:
        is_good = share >= MOST if flush == "2ms" else share <= LEAST
    return "yes" if is_good else "NO"


def show(knob: Knob, flush: str, pairs: Sequence[tuple[Budget, Budget]], ratio: float) -> bool:
    """Print a line of the table; returns whether the goal is missed."""
    means = [{reason: fmean(pair[side].get(reason, 0.0) for pair in pairs) for reason in REASONS} for side in (0, 1)]
    totals = [sum(budget.values()) for budget in means]
    times = " -> ".join(loosen_units(format_micros(total)) for total in totals)
    shares = [
        f"{reason} {share_of(pairs, [reason])}"
        for reason in sorted(pairs[0][0], key=lambda reason: -abs(means[0][reason] - means[1][reason]))
        if abs(means[0][reason] - means[1][reason]) >= 0.03 * abs(totals[0] - totals[1])
    ]
    verdict = holds(knob, flush, pairs)
    values = " -> ".join(map(str, knob.values))
    cells = [knob.dbms, f"{knob.name}: {values}", flush, f"{ratio:.2f}x", times, ", ".join(shares), verdict]
    print(f"| {' | '.join(cells)} |", flush=True)
    return verdict == "NO"


def main() -> int:
    """Measure and print; returns 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = {str(knob): knob for knob in KNOBS}
    parser.add_argument("knobs", nargs="*", metavar="KNOB", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--pairs", type=int, default=4, help="of runs, per knob and device (default: %(default)s)")
    parser.add_argument(
        "--devices",
        nargs="+",
        choices=FLUSHES,
        default=list(FLUSHES[:2]),
        help="durations of a flush (default: %(default)s)",
    )
    args = parser.parse_args()
    if unknown := set(args.knobs) - set(names):
        parser.error(f"unknown knob {', '.join(sorted(unknown))}; expected some of {', '.join(names)}")
    knobs = [names[name] for name in args.knobs or names]
    specs = read_specs(knobs, ROOT / "results" / STUDY / "specs")
    print(
        "| DBMS | knob | flush | faster | time of an operation | shares of the change (95 %) | goal |\n"
        + "|---" * 7
        + "|"
    )
    missed = 0
    for flush in args.devices:
        device = make_device(flush)  # goes away with this process
        for knob in knobs:
            try:
                missed += show(knob, flush, *measure_knob(specs, knob, device, args.pairs))
            except RuntimeError as error:  # the other knobs can still be measured
                missed += 1
                print(f"{knob} on {flush}: {error}", file=sys.stderr)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

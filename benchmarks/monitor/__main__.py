"""What watching costs: knobscope's monitor beside bpftrace, bcc's tools and one event per request, in one run.

Run `python benchmarks/monitor` as root on a machine that does nothing else. Every round starts every condition once, in
random order, on each target, and loads the target with fio (4 KiB, direct I/O) at depth 1 and 32: once for requests per
second, and once, shorter, with the kernel's own statistics of BPF programs (BPF_ENABLE_STATS) switched on for
nanoseconds per request. Prints a Markdown table and ends with the same figures as JSON.

Targets: `memory`, a loop device on a file in /dev/shm, and `disk`, a file in a scratch directory on this machine's
disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from conditions import CONDITIONS, Condition, UnavailableError
from costs import count_costs
from load import DEPTHS, Sample, Target, open_disk, open_memory, run_load
from table import format_tables, summarise, write_between_markers

_COST_SECONDS = 0.3


def main() -> int:
    """Measure, print, and write what was asked for."""
    options = _parse()
    if os.geteuid() != 0:
        print("benchmarks/monitor: BPF and loop devices need root", file=sys.stderr)
        return 1
    samples: list[Sample] = []
    reasons: dict[str, str] = {}
    with ExitStack() as stack:
        targets = [stack.enter_context(open_memory())] if "memory" in options.targets else []
        targets += [stack.enter_context(open_disk(options.directory))] if "disk" in options.targets else []
        conditions = [
            condition
            for condition in CONDITIONS
            if not options.only or condition.name in {CONDITIONS[0].name, *options.only}
        ]
        for number, target, condition in _plan(options.rounds, targets, conditions):
            if condition.name in reasons:
                continue
            print(f"round {number}: {condition.name} on {target.name}", file=sys.stderr)
            try:
                samples += _measure(number, target, condition, options.seconds)
            except UnavailableError as reason:
                reasons[condition.name] = str(reason)
    summary = summarise(samples, reasons, options.rounds, options.seconds)
    tables = format_tables(summary)
    print(tables)
    print(json.dumps(summary, indent=1))
    if options.json:
        options.json.write_text(
            json.dumps({**summary, "samples": [vars(sample) for sample in samples]}, indent=1) + "\n"
        )
    if options.write:
        write_between_markers(options.write, tables)
    return 0


def _plan(rounds: int, targets: list[Target], conditions: list[Condition]) -> Iterator[tuple[int, Target, Condition]]:
    """Yield every condition on every target once per round, shuffled."""
    order = random.Random(1)  # noqa: S311 - an order, no secret
    for number in range(rounds):
        pairs = [(target, condition) for target in targets for condition in conditions]
        order.shuffle(pairs)
        for target, condition in pairs:
            yield number, target, condition


def _measure(number: int, target: Target, condition: Condition, seconds: float) -> Iterator[Sample]:
    """Start the condition, run all loads under it in random order, and end it."""
    loads = [(depth, is_cost) for depth in DEPTHS for is_cost in (False, True)]
    random.Random(f"{number} {target.name} {condition.name}").shuffle(loads)  # noqa: S311
    with condition.open(target) as running:
        for depth, is_cost in loads:
            with count_costs(is_cost) as costs:
                outcome = run_load(target, depth, _COST_SECONDS if is_cost else seconds, running)
            yield Sample(
                number,
                target.name,
                condition.name,
                depth,
                outcome.iops,
                outcome.requests,
                outcome.missed,
                costs.cpu_s / outcome.seconds,
                costs.programs_ns / outcome.requests if is_cost else None,
            )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of everything (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each load (default: %(default)s)")
    parser.add_argument("--targets", nargs="+", choices=("memory", "disk"), default=["memory", "disk"])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="conditions beside nothing (default: all)")
    parser.add_argument("--directory", type=Path, default=Path(), help="where on the disk (default: here)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write figures and all single samples")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

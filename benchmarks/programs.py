"""Are the verdicts on one configuration true? Programs whose I/O is known, on modelled devices.

Run `python benchmarks/programs.py [--rules io_parallelism ...] [--devices sata-ssd ...] [--programs scan log ...]` as
root, in an empty folder, on an idle machine; what was measured stays in the folder. For each rule fio runs instead of a
DBMS, under several workloads, each of which is a case on each device. The truth is known by construction, or by another
program:

- `io_parallelism`: a program that asks for one request at a time is compared with itself, asking for 32 (or with 32 of
  its kind). The rule is right where that gains 5 % or more (99 %), and wrong of all programs that ask for many.
- `access_pattern`: whether the order in which a program asks is the one that its workload declares, and that of the
  device. Which order it has is known.
- `read_write_interference`: a program reads a file while another one writes to a second file now and then. The rule is
  right where as many readers do 5 % more or more (99 %) while the writer has another device; never where nothing else
  writes to the device, or where it is the same file.

Beside it stand naive rules on the same runs: a mean depth below two; more than a fifth of the requests at random
(Drishti); a file that is only read beside one that is written to. Cases whose truth is not clear are counted apart.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import yaml
from scores import Score, print_table
from tiers import is_slower
from verdicts import link_specs, run_study

from knobscope.stages.remeasure.shares import amount_of

LEAST = 0.05
MIB = 1024
_READ_64 = {"rw": "read", "bs": "64k", "engine": "psync"}
_DEEP = {"depth": 32}
_MANY = {"jobs": 32, "engine": "psync"}


@dataclass(frozen=True)
class Program:
    """A workload of fio, and what is known of it."""

    parameters: Mapping[str, Any]
    generator: str = "fio-program"
    threads: int = 8
    order: str | None = None
    cold: bool = False
    #: What the rule should say, or the program whose speed decides that; None where nobody knows.
    truth: bool | str | None = False


def in_depth(name: str, parameters: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Program]:
    """Return a program that asks for one request at a time, and the same one asking for many."""
    return {f"{name}-one": Program(parameters, truth=f"{name}-many"), f"{name}-many": Program({**parameters, **more})}


def apart(name: str, parameters: Mapping[str, Any], threads: int) -> dict[str, Program]:
    """Return readers beside a writer, and the same ones with the writer on another device."""
    return {
        name: Program(parameters, "fio-pair", threads, truth=f"{name}-apart"),
        f"{name}-apart": Program(parameters, "fio-apart", threads),
    }


PROGRAMS: dict[str, dict[str, Program]] = {
    "io_parallelism": {
        **in_depth("read-4k", {}, _DEEP),
        **in_depth("read-128k", {"bs": "128k"}, _MANY),
        **in_depth("write-32k", {"rw": "randwrite", "bs": "32k"}, _DEEP),
        **in_depth("mixed-4k", {"rw": "randrw"}, _MANY),
        **in_depth("flushed-4k", {"rw": "randwrite", "fdatasync": 1}, _MANY),
    },
    "access_pattern": {
        "scan": Program(_READ_64, order="sequential"),
        "scan-cached": Program({**_READ_64, "bs": "4k", "direct": 0}, order="sequential", cold=True),
        "scans-of-many": Program(
            {**_READ_64, "jobs": 8, "apart": "8m", "size": "8m"},
            order="sequential",
        ),
        "scan-at-random": Program({**_READ_64, "rw": "randread"}, order="sequential", truth=True),
        "small-scan-at-random": Program({**_READ_64, "rw": "randread", "bs": "4k"}, order="sequential", truth=True),
        "scans-at-random": Program(
            {**_READ_64, "rw": "randread", "bs": "16k", "jobs": 8}, order="sequential", truth=True
        ),
        "scan-at-random-cached": Program(
            {**_READ_64, "rw": "randread", "bs": "16k", "direct": 0}, order="sequential", cold=True, truth=True
        ),
        "lookups": Program({**_READ_64, "rw": "randread", "bs": "4k"}, order="random"),
        "lookups-cached": Program({**_READ_64, "rw": "randread", "bs": "4k", "direct": 0}, order="random", cold=True),
        "lookups-of-many": Program({**_READ_64, "rw": "randread", "bs": "16k", "jobs": 8}, order="random"),
        "lookups-by-scan": Program(_READ_64, order="random", truth=True),
        "lookups-by-small-scan": Program({**_READ_64, "bs": "4k"}, order="random", truth=True),
        "lookups-by-cached-scan": Program(
            {**_READ_64, "bs": "16k", "direct": 0}, order="random", cold=True, truth=True
        ),
        "log": Program({**_READ_64, "rw": "write", "bs": "8k", "fdatasync": 16}),
        "log-cached": Program({**_READ_64, "rw": "write", "bs": "8k", "direct": 0, "fdatasync": 16}),
        "updates": Program({**_READ_64, "rw": "randwrite", "bs": "8k"}),
        "updates-of-many": Program({**_READ_64, "rw": "randwrite", "bs": "16k", "jobs": 8}),
        "updates-cached": Program({**_READ_64, "rw": "randwrite", "bs": "8k", "direct": 0, "fdatasync": 1}),
        # The kernel writes back what is there, in the order of the file, and nobody knows how much lies side by side.
        "updates-sorted-by-kernel": Program(
            {**_READ_64, "rw": "randwrite", "bs": "8k", "direct": 0, "fdatasync": 8192}, truth=None
        ),
    },
    "read_write_interference": {
        **apart("reader-writer", {}, threads=1),
        **apart("reader-trickle", {"rate": "1m"}, threads=1),
        **apart("readers-writer", {"readers": 8}, threads=8),
        "reader-own-writes": Program({"written": "program.dat"}, generator="fio-pair", threads=1),
    },
}
DEVICES = {
    "io_parallelism": ["hdd-7200", "sata-ssd", "nvme-datacenter", "one-at-a-time"],
    "access_pattern": ["nvme-consumer", "sata-ssd"],
    "read_write_interference": ["hdd-7200", "sata-ssd", "nvme-consumer"],
}
#: How long a run is measured: what interferes comes and goes every .3 seconds.
SECONDS = {"io_parallelism": 1, "access_pattern": 2, "read_write_interference": 2}
NAIVE = {
    "io_parallelism": "median(busy_depth) < 2",
    "access_pattern": "median(coalesce(read_random_share, write_random_share)) > 0.2",
    "read_write_interference": "count(*) > 1 AND min(written) = 0 AND max(written) > 0",
}
_STUDY: dict[str, Any] = {
    "dbms": ["fio"],
    "knobs": {"fio": {"randrepeat": None}},
    "sampling": {"runs_per_round": 4, "max_rounds": 1},
    "screening": {"top": 1},
    "sweep": {"repeats": 3, "always": ["randrepeat"]},
}
_SPEEDS = """
    SELECT device, workload, ln(m.throughput_ops) AS speed, ln(nullif(m.throughput_ops * reads_per_op, 0)) AS reads
    FROM runs_behind JOIN run_metrics m USING (run_id)
    WHERE knob IS NULL
"""


def write_specs(rule: str, programs: Mapping[str, Program], devices: list[str]) -> Path:
    """Write the study of a rule and its workloads into this folder's `specs`."""
    for name, program in programs.items():
        workload = {
            "name": name, "generator": program.generator, "class": "read", "records": 64 * MIB,
            "threads": program.threads, "warmup_s": 0, "measure_s": SECONDS[rule], "cold": program.cold,
            "parameters": dict(program.parameters), "read_order": program.order,
        }  # fmt: skip
        text = yaml.safe_dump({key: value for key, value in workload.items() if value is not None})
        Path(f"specs/workloads/{name}.yaml").write_text(text)
    study = {
        "name": f"programs-{rule}", "description": f"Is {rule} right about programs whose I/O is known?",
        "devices": devices, "workloads": dict.fromkeys(programs), **_STUDY, "rules": [rule],
    }  # fmt: skip
    if rule == "access_pattern":
        study["watch"] = ["syscalls"]
    file = Path("specs/studies") / f"programs-{rule}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(study))
    return file


@dataclass(frozen=True)
class Speeds:
    """Natural logs of what the runs of a case did in a second: operations, and reads of the device."""

    speed: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)


def measure_speeds(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], Speeds]:
    """Return the speeds of every device and workload in the runs of the default configuration."""
    speeds: dict[tuple[str, str], Speeds] = {}
    for device, workload, speed, reads in connection.execute(_SPEEDS).fetchall():
        case = speeds.setdefault((device, workload), Speeds())
        case.speed.append(speed)
        if reads is not None:
            case.reads.append(reads)
    return speeds


def truth_of(rule: str, device: str, name: str, speeds: Mapping[tuple[str, str], Speeds]) -> bool | None:
    """Whether the rule would be right to find something in a program on a device."""
    truth = PROGRAMS[rule][name].truth
    if not isinstance(truth, str):
        return truth
    own, reference = speeds[device, name], speeds[device, truth]
    if rule == "io_parallelism":
        return is_slower(amount_of(own.speed).minus(amount_of(reference.speed)), LEAST)
    return is_slower(amount_of(own.reads).minus(amount_of(reference.reads)), LEAST)


def judge(
    rule: str, programs: Mapping[str, Program], devices: list[str]
) -> Iterator[tuple[str, str, str, bool, bool | None]]:
    """Yield the device of each case, what it is, the rule's verdict, the naive one, and the truth."""
    results = run_study(write_specs(rule, programs, devices))
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        speeds = measure_speeds(connection)
        rows = connection.execute(
            "SELECT device, workload, verdict, confirmed, sentence FROM findings WHERE rule = ? ORDER BY ALL", [rule]
        ).fetchall()
        naive = judge_naively(connection, rule)
    for device in devices:
        for name in programs:
            of_case = [row for row in rows if row[:2] == (device, name)]
            verdicts = {"withdrawn" if row[3] == "no" else row[2] for row in of_case}
            verdict = "mismatch" if "mismatch" in verdicts else " ".join(sorted(verdicts))
            truth = truth_of(rule, device, name, speeds)
            yield device, f"{name}: {verdict}; {of_case[0][4]}", verdict, naive.get((device, name), False), truth


def judge_naively(connection: duckdb.DuckDBPyConnection, rule: str) -> dict[tuple[str, str], bool]:
    """Return what the naive rule says of every device and workload."""
    if rule == "read_write_interference":
        source = """
            (SELECT device, workload, file_group AS file, sum(requests) AS requests,
                coalesce(sum(requests) FILTER (op = 'write'), 0) AS written
            FROM run_files JOIN runs_behind USING (run_id) WHERE knob IS NULL AND role = 'data' GROUP BY ALL)
        """
    else:
        source = """
            (SELECT device, workload, d.busy_depth, 1 - read_sequential_share AS read_random_share,
                1 - write_sequential_share AS write_random_share
            FROM run_metrics JOIN runs_behind USING (run_id) LEFT JOIN run_depths d USING (run_id) WHERE knob IS NULL)
        """
    rows = connection.execute(
        f"SELECT device, workload, coalesce({NAIVE[rule]}, false) FROM {source} GROUP BY ALL"  # noqa: S608
    ).fetchall()
    return {(device, workload): verdict for device, workload, verdict in rows}


def main() -> None:
    """Print every case, then precision and recall by rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--devices", nargs="+", help="devices of every rule; absent: those that each rule has")
    parser.add_argument("--programs", nargs="+", help="some of the programs; absent: all")
    args = parser.parse_args()
    link_specs()
    scores: dict[str, dict[str, Score]] = {}
    for rule in args.rules:
        programs = {
            name: program for name, program in PROGRAMS[rule].items() if name in (args.programs or PROGRAMS[rule])
        }
        for device, text, verdict, naive, truth in judge(rule, programs, args.devices or DEVICES[rule]):
            print(f"{rule} {device} {text}\n    truth {truth}, naive {naive}", flush=True)
            if scores.setdefault(device, {}).setdefault(rule, Score()).add(verdict == "mismatch", naive, truth):
                print(f"    MISS: {'misses it' if truth else 'is wrong'}")
    print_table(scores)


if __name__ == "__main__":
    main()

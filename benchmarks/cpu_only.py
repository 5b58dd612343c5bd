"""Is a device blamed for values that cost CPU time only? Servers with group commit, on modelled devices, by time.

Run `python benchmarks/cpu_only.py [--servers redis ...] [--devices nvme-consumer ...]` as root, in an empty folder, on
an idle machine; what was measured stays in the folder, and a second call measures what is missing. With `--cases FILE`
the cases go into a file, a line each, in place of those of the same server and device, and the table is that of the
whole file; `--servers` without a name prints it alone.

Each server gets a knob that is a tax: CPU time for every command that arrives on a socket (`cpu_tax.c`, preloaded), and
nothing else. Commits wait for flushes, several clients share each, and with a tax fewer do: flushes per operation rise.
The truth needs no experiment: where a tax makes the server slower, no property of the device is to blame, and on a
device whose flush takes a millisecond or more the flush is to blame for what a value gains that does without. (A tax
can make a server faster: while it is paid, more commits come to share the next flush.) Studies watch waits. A case
counts where the effect is 10 % or more, and beyond noise (99 %). Nothing is measured again: a rule has to be right by
itself.
"""

import argparse
import math
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml
from scores import Score, print_table
from verdicts import BLAMED, CERTAIN, ROOT, link_specs, load_cases, read_cases, run_study, save_cases

SOURCE = ROOT / "benchmarks/cpu_tax.c"
TAX, TAXES = "tax", (50, 200, 1000, 5000)
LEAST_EFFECT = math.log(1.1)
#: Devices whose flush takes so long that it is most of a commit.
SLOW_FLUSH = ("nvme-consumer", "hdd-7200")


@dataclass(frozen=True)
class Server:
    """A server, its clients, the setting that does without flushes, and what the baseline sets."""

    dbms: str
    program: str
    threads: int
    unflushed: tuple[str, Any]
    baseline: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Return what it is called on the command line."""
        return f"{self.dbms}-{self.threads}"


SERVERS = {
    server.name: server
    for server in (
        Server("postgresql", "postgres", 8, ("synchronous_commit", "off")),
        Server("postgresql", "postgres", 32, ("synchronous_commit", "off")),
        Server("mariadb", "mariadbd", 8, ("innodb_flush_log_at_trx_commit", 0)),
        Server("mysql", "mysqld", 8, ("innodb_flush_log_at_trx_commit", 0), (("sync_binlog", 0),)),
        Server("redis", "redis-server", 8, ("appendfsync", "no"), (("appendfsync", "always"),)),
    )
}


def write_study(server: Server, device: str) -> Path:
    """Build the tax, and write the taxed DBMS and its study into this folder's `specs`."""
    library = Path("cpu_tax.so").resolve()
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True
    )
    taxed, name = f"{server.dbms}-taxed", f"cpu-only-{server.name}-{device}"
    knob = {
        "type": "integer",
        "range": [0, max(TAXES)],
        "default": 0,
        "unit": "us",
        "apply": "restart",
        "readable": False,
        "mechanism": "other",
        "expect": "slower",
        "writing": {"file": TAX, "line": "{value}"},
        "description": "CPU time of every command.",
        "source": "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    }
    dbms = {
        "name": taxed,
        "description": f"{server.dbms}, every command of which costs CPU time",
        "extends": server.dbms,
        "environment": {"LD_PRELOAD": str(library), "TAXED": server.program, "TAX_FILE": f"{{config}}/{TAX}"},
        "config_files": {TAX: {"lines": ["0"]}},
        "knobs": {TAX: knob},
    }
    unflushed, value = server.unflushed
    study = {
        "name": name,
        "description": "Is the device blamed for CPU time?",
        "dbms": [taxed],
        "devices": [device],
        "workloads": {"ycsb-a": {"records": 2000, "threads": server.threads, "warmup_s": 0.5, "measure_s": 1.5}},
        "knobs": {taxed: {TAX: {"values": [0, *TAXES]}, unflushed: {"values": [value]}}},
        "baseline": {taxed: dict(server.baseline)},
        "watch": ["waits"],
        "sampling": {"runs_per_round": 4, "max_rounds": 1},
        "screening": {"top": 1},
        "sweep": {"repeats": 4, "always": [TAX, unflushed]},
        "remeasure": {"findings": 0},
        "rules": [*BLAMED, "io_parallelism", "intuition"],
    }
    for kind, spec in (("dbms", dbms), ("studies", study)):
        file = Path("specs") / kind / f"{spec['name']}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(spec, sort_keys=False))
    return file


def measure(server: Server, device: str) -> Iterator[dict[str, Any]]:
    """Yield each value with a clear effect in the study of a server on a device, as in the file of cases."""
    began = time.monotonic()
    results = run_study(write_study(server, device))
    said: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        cases = read_cases(connection)
        findings = connection.execute(
            "SELECT rule, knob, value, verdict FROM findings WHERE knob IS NOT NULL"
        ).fetchall()
    for rule, knob, value, verdict in findings:
        said[knob, value][rule] = verdict
    for case in cases:
        if abs(case["estimate"]) < max(LEAST_EFFECT, CERTAIN * case["standard_error"]):
            continue
        is_tax = case["knob"] == TAX
        is_known = case["estimate"] < 0 if is_tax else device in SLOW_FLUSH
        flush = not is_tax if is_known else None
        yield {
            "server": server.name,
            "device": device,
            "knob": case["knob"],
            "value": case["value"],
            "times": round(math.exp(case["estimate"]), 4),
            "said": {rule: said[case["knob"], case["value"]].get(rule, "-") for rule in BLAMED},
            "naive": {rule: bool(case[rule]) for rule in BLAMED},
            "truth": {"flush": flush} | ({"io_size": flush, "io_sequentiality": flush} if is_tax else {}),
        }
    print(f"{server.name} on {device}: {(time.monotonic() - began) / 60:.1f} minutes, {len(cases)} values", flush=True)


def print_scores(cases: Sequence[dict[str, Any]]) -> None:
    """Print each case, then the table."""
    scores = {group: {rule: Score() for rule in BLAMED} for group in (TAX, "without flushes")}
    for case in cases:
        group = TAX if case["knob"] == TAX else "without flushes"
        misses = [
            rule
            for rule, truth in case["truth"].items()
            if scores[group][rule].add(case["said"][rule] == "mismatch", case["naive"][rule], truth)
        ]
        note = f"  MISS: {', '.join(misses)}" if misses else ""
        setting = f"{case['server']} {case['device']} {case['knob']}={case['value']}"
        print(f"{setting}: {case['times']}x {case['said']}{note}")
    print_table(scores)


def main() -> None:
    """Measure each server on each device, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", nargs="*", default=list(SERVERS), choices=SERVERS)
    parser.add_argument("--devices", nargs="+", default=["sata-ssd-plp", *SLOW_FLUSH])
    parser.add_argument("--cases", type=Path, help="file of cases, a line each")
    args = parser.parse_args()
    link_specs()
    cases = load_cases(args.cases)
    for name, device in [(name, device) for name in args.servers for device in args.devices]:
        cases = [case for case in cases if (case["server"], case["device"]) != (name, device)]
        cases += measure(SERVERS[name], device)
        save_cases(args.cases, cases)
    print_scores(cases)


if __name__ == "__main__":
    main()

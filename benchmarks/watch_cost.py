"""What watching costs a server: windows of one load that runs all the time, watched in different ways, in turns.

Run as root from the checkout, on a quiet machine:

    python benchmarks/watch_cost.py [--rounds 40] [--seconds 1] [--device sata-ssd-plp] [redis|postgresql|pgbench...]

Four clients run YCSB-A on one server in memory, half reads and half updates; every update is flushed. `pgbench`: the
same mix on PostgreSQL from a client that takes much less time for an operation, so that the server and what watches it
take more. Each round has a window of each way, in random order:

- `unwatched`: no program of ours is loaded;
- `idle`: all programs are loaded and attached, and nothing is followed;
- `block`: the requests of the block layer are watched;
- `waits`: waits are, too;
- `statistics`: as `waits`, while the kernel times each program, which costs something itself: not compared.

Prints for each way operations per second, what is kept of the unwatched ones of the same round (mean, 95 % interval),
and processor time per operation, of the whole machine; then what each program took. Windows of one load differ by less
than runs do: a run has its own start, its own data, and its own place in the device's caches.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, median, stdev

from complaint_servers import ROOT, Postgresql, World, start_redis

from knobscope.devices import find_block_device
from knobscope.generators import Session, YcsbRun, client_properties, load_records
from knobscope.processes import supervise
from knobscope.specs import Dbms, Workload, read_spec
from knobscope.watch import open_watch
from knobscope.watch.interface import Place, ProbeName

_STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
_SETTLED_S = 0.3  # after a watch has begun
_CLIENTS = 4
_READY_S, _DAY_S = 60, 86_400
_PORT = 54997
_LIKELY = 1.96
_KEPT = 0.97
#: Way -> probes; None: no watch.
WAYS: Mapping[str, Sequence[ProbeName] | None] = {
    "unwatched": None,
    "idle": ("waits",),
    "block": (),
    "waits": ("waits",),
    "statistics": ("waits",),
}
_SCRIPT = """\\set read random(1, 10000)
\\set write random(1, 10000)
SELECT abalance FROM pgbench_accounts WHERE aid = :read;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :write;
"""
_ASK = "SELECT extract(epoch FROM clock_timestamp()), pg_snapshot_xmax(pg_current_snapshot())"

#: Seconds since some moment, and operations since some other one.
Edge = tuple[float, int]


@dataclass(frozen=True)
class Server:
    """One under load, in a control group of its own. `look`: its clock and its count of operations."""

    group: str
    pids: Sequence[int]
    look: Callable[[], Edge]


@dataclass
class Found:
    """Of one way: operations per second and processor microseconds per operation of each window, programs' costs."""

    rates: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    programs: list[Mapping[str, tuple[float, float]]] = field(default_factory=list)


def begin_ycsb(world: World, dbms: str, **connection: str) -> None:
    """Load the records of YCSB-A into a server and begin the load, which ends with the world."""
    workload = read_spec(ROOT / "specs/workloads/ycsb-a.yaml", Workload, None)[1]
    spec = read_spec(ROOT / f"specs/dbms/{dbms}.yaml", Dbms, None)[1]
    assert spec.connection is not None
    session = Session(
        properties=client_properties(workload),
        binding=spec.connection.binding,
        connection=connection,
        init=(),
        readback=None,
        directory=world.home / "client",
        threads=_CLIENTS,
        user=world.user,
    )
    as_user = partial(supervise, user=world.user)
    load_records(session, spec.loading.tables, as_user)
    run = world.stack.enter_context(YcsbRun(session, warmup_s=1, measure_s=_DAY_S, supervise=as_user))
    run.wait_measuring(_READY_S)


def open_postgresql(world: World, mount: Path, *, is_ycsb: bool) -> Callable[[], Server]:
    """Start a PostgreSQL; return what begins its load. An update has one number, and is one of two operations."""
    settings = {"checkpoint_timeout": "1h", "max_wal_size": "20GB", "autovacuum": "off"}
    server = Postgresql.start(world, mount, int(not is_ycsb), port=_PORT, listen_addresses="127.0.0.1", **settings)

    def look() -> Edge:
        words = ["psql", "-AtF", " ", "-c", _ASK, *server.client]
        output = subprocess.run(words, check=True, capture_output=True, text=True, user=world.user, cwd="/").stdout
        seconds, number = output.split()
        return float(seconds), 2 * int(number)

    def begin() -> Server:
        if is_ycsb:
            url = f"jdbc:postgresql://127.0.0.1:{_PORT}/postgres"
            begin_ycsb(world, "postgresql", **{"jdbc.url": url, "jdbc.user": "postgres"})
        else:
            server.load("-M", "prepared", "-c", str(_CLIENTS), "-j", "1", "-T", str(_DAY_S), script=_SCRIPT)
        time.sleep(1)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        return Server(_make_group(world), [server.pid, *map(int, children)], look)

    return begin


def open_redis(world: World, mount: Path) -> Callable[[], Server]:
    """Start a Redis that flushes every command; return what begins its load. An operation is one command."""
    pid, benchmark = start_redis(world, mount, "--appendonly", "yes", "--appendfsync", "always")
    socket = benchmark[benchmark.index("-s") + 1]

    def look() -> Edge:
        output = subprocess.run(
            ["redis-cli", "-s", socket, "info"], check=True, capture_output=True, text=True, user=world.user
        ).stdout
        facts = dict(line.split(":", 1) for line in output.split() if ":" in line)
        return int(facts["server_time_usec"]) / 1e6, int(facts["total_commands_processed"])

    def begin() -> Server:
        begin_ycsb(world, "redis", **{"redis.socket": socket})
        return Server(_make_group(world), [pid], look)

    return begin


SERVERS: Mapping[str, Callable[[World, Path], Callable[[], Server]]] = {
    "redis": open_redis,
    "postgresql": partial(open_postgresql, is_ycsb=True),
    "pgbench": partial(open_postgresql, is_ycsb=False),
}


def _make_group(world: World) -> str:
    """Make a control group; return its name below the root. It goes when all in it have ended."""
    root = next(
        Path(fields[1])
        for fields in map(str.split, Path("/proc/self/mounts").read_text().splitlines())
        if fields[2] == "cgroup2"
    )
    group = root / f"knobscope-cost-{os.getpid()}"
    group.mkdir()
    world.stack.callback(_remove_group, group)
    return str(group)


def _remove_group(group: Path) -> None:
    for pid in (group / "cgroup.procs").read_text().split():
        (group.parent / "cgroup.procs").write_text(pid)
    group.rmdir()


def _read_busy_us() -> float:
    """Return the processor time of the whole machine."""
    user, nice, system, _, _, interrupts, softirqs, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return (user + nice + system + interrupts + softirqs) * 1e6 / os.sysconf("SC_CLK_TCK")


def measure_window(server: Server, mount: Path, way: str, seconds: float, found: Found) -> None:
    """Add a window to what was found of a way."""
    probes = WAYS[way]
    with ExitStack() as stack:
        watch = None
        if probes is not None:
            watch = stack.enter_context(open_watch(find_block_device(mount), 4096, "device", "bpf", probes=probes))
        if watch and way != "idle":
            watch.attach(Place(server.pids, "/" + Path(server.group).name))
            if way == "statistics":
                _STATISTICS.write_text("1")
                stack.callback(_STATISTICS.write_text, "0")
            watch.begin()
        time.sleep(_SETTLED_S)
        (began, before), busy = server.look(), _read_busy_us()
        time.sleep(seconds)
        busy, (ended, after) = _read_busy_us() - busy, server.look()
        operations, elapsed = after - before, ended - began
        found.rates.append(operations / elapsed)
        found.cpu_us.append(busy * elapsed / seconds / operations)
        if watch and way == "statistics":
            rows = watch.end()["wait_programs"]
            per_operation = operations * (elapsed + _SETTLED_S) / elapsed
            found.programs.append(
                {row["program"]: (row["runs"] / per_operation, row["time_ns"] / per_operation) for row in rows}
            )


def measure_server(name: str, args: argparse.Namespace) -> dict[str, Found]:
    """Return what was found of each way."""
    found: dict[str, Found] = defaultdict(Found)
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="knobscope-cost-") as home:
        Path(home).chmod(0o777)
        world = World(stack, Path(home))
        mount = world.open_device(args.device)
        server = SERVERS[name](world, mount)()
        for pid in server.pids:
            Path(server.group, "cgroup.procs").write_text(str(pid))
        for number in range(args.rounds):
            for way in random.Random(number).sample(sorted(WAYS), len(WAYS)):  # noqa: S311 - an order
                measure_window(server, mount, way, args.seconds, found[way])
    return found


def describe(name: str, found: Mapping[str, Found]) -> tuple[list[str], float]:
    """Return the rows of the table, and the share that is kept with waits."""
    rows, kept = [], math.nan
    unwatched = found["unwatched"].rates
    for way in WAYS:
        if way == "statistics":
            continue
        ratios = [math.log(rate / base) for rate, base in zip(found[way].rates, unwatched, strict=True)]
        width = _LIKELY * stdev(ratios) / math.sqrt(len(ratios))
        kept = math.exp(mean(ratios))
        low, high = (100 * math.exp(mean(ratios) + side * width) for side in (-1, 1))
        span = f"{100 * kept:.1f} % ({low:.1f} to {high:.1f})"
        cells = [name, way, f"{median(found[way].rates):,.0f}", "" if way == "unwatched" else span]
        rows.append(f"| {' | '.join(cells)} | {mean(found[way].cpu_us):.1f} |")
    return rows, kept


def main() -> int:
    """Print the tables; returns how many servers keep less than .97 with waits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", nargs="*", default=sorted(SERVERS), help="redis, postgresql, pgbench (default: all)")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window")
    parser.add_argument("--device", default="sata-ssd-plp", help="an emulated one (default: %(default)s)")
    args = parser.parse_args()
    print("| server | way | operations/s | kept | processor us per operation |\n|---|---|---|---|---|")
    programs: dict[str, dict[str, tuple[float, float]]] = {}
    missed = 0
    for name in args.server:
        found = measure_server(name, args)
        rows, kept = describe(name, found)
        print(*rows, sep="\n", flush=True)
        missed += kept < _KEPT
        windows = found["statistics"].programs
        programs[name] = {
            program: (median(w[program][0] for w in windows), median(w[program][1] for w in windows))
            for program in windows[0]
        }
    print("\n| server | program | runs per operation | ns per operation |\n|---|---|---|---|")
    for name, costs in programs.items():
        for program, (runs, ns) in costs.items():
            print(f"| {name} | {program} | {runs:.2f} | {ns:.0f} |")
    return missed


if __name__ == "__main__":
    sys.exit(main())

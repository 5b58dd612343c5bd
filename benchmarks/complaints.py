"""Scores `knobscope attach` on ten servers that are slow for a known reason.

Run as root from the checkout, on a quiet machine:

    .venv/bin/python benchmarks/complaints.py [--only NAME ...] [--seconds 20] [--without-bpf] [--text] [--no-attach]

Each complaint starts a real server under the load of its own client, causes one trouble, and runs `attach --json` on
it. It is right when `at_fault` names the trouble. With `--without-bpf` a second window of the same load is watched with
`--monitor procfs`, and the agreement of the two is printed. `--text` prints what attach says; `--no-attach` only starts
the load, to see that it runs.

The diagnosis was changed with the complaints in view, except those of HELD_OUT, which are scored apart.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from complaint_servers import ROOT, Postgresql, World, open_world, start_mariadb, start_redis

from knobscope.devices import find_block_device
from knobscope.devices.calibration import ensure_calibrated

_WARM_S = 4
_MEMORY = Path("/sys/fs/cgroup/memory")  # version 1; version 2 has the same limits under other names
_LIMITED_MIB = 160
_CAP_IOPS = 300
_DIRTY_BYTES = 16 << 20


@dataclass(frozen=True)
class Case:
    """A server under load: its process, and options of attach."""

    pid: int
    options: Sequence[str] = ()


def _flush(world: World) -> Case:
    """Each commit of PostgreSQL waits for a flush of a drive without power-loss protection."""
    server = Postgresql.start(world, world.open_device("sata-ssd"), 5)
    server.load("-c", "4")
    return Case(server.pid)


def _one_request(world: World) -> Case:
    """One client of MariaDB reads at random, one page at a time, from a drive that can read ten at once."""
    mount = world.open_device("sata-ssd", read="1ms")
    settings = ["--innodb-buffer-pool-size=8M", "--innodb-flush-method=O_DIRECT", "--innodb-flush-log-at-trx-commit=0"]
    pid, sysbench = start_mariadb(world, mount, 1_000_000, *settings)
    world.start(*sysbench, "--threads=1", "--rand-type=uniform", "oltp_point_select", "run")
    return Case(pid)


def _small_writes(world: World) -> Case:
    """Redis appends a little and flushes, on a drive where a write that fills no whole unit costs more than a flush."""
    mount = world.open_device("slow-unit")
    profile = world.home / "profile.json"
    pid, benchmark = start_redis(world, mount, "--appendonly", "yes", "--appendfsync", "always")
    command = ["attach", "--pid", str(pid), "--for", "1s", "--monitor", "procfs", "--root", str(ROOT)]
    _call(world, [*command, "--characterise", str(mount), "--profile", str(profile)])
    world.start(*benchmark, "-t", "set", "-c", "4")
    return Case(pid, ["--profile", str(profile)])


def _writeback(world: World) -> Case:
    """Redis appends faster than the drive writes: the kernel allows no more unwritten pages, and its writes wait."""
    mount = world.open_device("sata-ssd", drain="20MB/s", random_write="200us")
    limits = Path("/sys/class/bdi") / number_device(mount)
    (limits / "strict_limit").write_text("1")
    (limits / "max_bytes").write_text(str(_DIRTY_BYTES))
    settings = ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"]
    pid, benchmark = start_redis(world, mount, *settings)
    world.start(*benchmark, "-t", "set", "-c", "8", "-d", "16384")
    return Case(pid)


def _checkpoint(world: World) -> Case:
    """PostgreSQL writes all that changed at once, every few seconds, in the way of its commits."""
    mount = world.open_device("sata-ssd-plp", random_write="1ms", cache="4MiB")
    settings = {"shared_buffers": "256MB", "max_wal_size": "32MB", "min_wal_size": "32MB", "checkpoint_timeout": "30s"}
    server = Postgresql.start(
        world, mount, 15, **settings, checkpoint_completion_target=0, wal_keep_size=0, checkpoint_flush_after=0
    )
    server.load("-c", "4")
    return Case(server.pid)


def _lock(world: World) -> Case:
    """Sixteen clients of PostgreSQL change the same row, which each keeps locked while it thinks."""
    server = Postgresql.start(world, world.open_device("nvme-datacenter"), 1)
    change = "update pgbench_branches set bbalance = bbalance + 1 where bid = 1;"
    server.load("-c", "16", script=f"begin;\n{change}\n\\sleep 5 ms\ncommit;\n")
    return Case(server.pid)


def _cpu(world: World) -> Case:
    """MariaDB sorts and sums what it has in memory."""
    pid, sysbench = start_mariadb(world, world.open_device("nvme-datacenter"), 50_000, "--innodb-buffer-pool-size=128M")
    world.start(*sysbench, "--threads=4", "oltp_read_only", "run")
    return Case(pid)


def _cap(world: World) -> Case:
    """PostgreSQL reads at random, and its cgroup may not read more often (io.max) than it does."""
    mount = world.open_device("nvme-datacenter")
    server = Postgresql.start(world, mount, 30, shared_buffers="1MB", max_parallel_workers_per_gather=0)
    group = world.stack.enter_context(open_group("blkio"))
    number = number_device(mount)
    (group / "blkio.throttle.read_iops_device").write_text(f"{number} {_CAP_IOPS}")
    (group / "cgroup.procs").write_text(str(server.pid))
    Path("/proc/sys/vm/drop_caches").write_text("1")
    server.load("-c", "8", "-S")
    return Case(server.pid)


def _swap(world: World) -> Case:
    """Redis reads what its cgroup's memory has no room for, from swap on the same device."""
    mount = world.open_device("sata-ssd")
    area = mount / "swap"
    subprocess.run(["fallocate", "-l", "600M", str(area)], check=True)
    area.chmod(0o600)
    shutil.chown(area, "root")
    subprocess.run(["mkswap", "-q", str(area)], check=True)
    subprocess.run(["swapon", str(area)], check=True)
    world.stack.callback(subprocess.run, ["swapoff", str(area)], check=True)
    pid, benchmark = start_redis(world, mount)
    group = world.stack.enter_context(open_group("memory"))
    (group / "memory.limit_in_bytes").write_text(f"{_LIMITED_MIB}M")
    (group / "cgroup.procs").write_text(str(pid))
    keys = ["-r", "150000", "-d", "1500"]
    fill = [*benchmark[:4], "-n", "300000", "-t", "set", "-P", "16", *keys]
    world.run(*fill)
    world.start(*benchmark, "-t", "get", "-c", "8", *keys)
    return Case(pid)


def _neighbour(world: World) -> Case:
    """MariaDB reads a little from a drive that fio keeps busy."""
    mount = world.open_device("sata-ssd", read="1ms")
    settings = ["--innodb-buffer-pool-size=8M", "--innodb-flush-method=O_DIRECT", "--innodb-flush-log-at-trx-commit=0"]
    pid, sysbench = start_mariadb(world, mount, 500_000, *settings)
    fio = ["fio", "--name=neighbour", f"--filename={mount / 'neighbour'}", "--size=128M", "--rw=randread", "--bs=4k"]
    world.start(*fio, "--direct=1", "--ioengine=libaio", "--iodepth=64", "--time_based", "--runtime=600")
    world.start(*sysbench, "--threads=2", "--rand-type=uniform", "oltp_point_select", "run")
    return Case(pid)


#: Name -> what causes it, and the `at_fault` that is right.
COMPLAINTS: Mapping[str, tuple[Callable[[World], Case], str]] = {
    "flush": (_flush, "flush"),
    "one-request": (_one_request, "one_read"),
    "small-writes": (_small_writes, "unit"),
    "writeback": (_writeback, "writeback"),
    "checkpoint": (_checkpoint, "checkpoint"),
    "lock": (_lock, "lock"),
    "cpu": (_cpu, "cpu"),
    "cap": (_cap, "cap"),
    "swap": (_swap, "swap"),
    "neighbour": (_neighbour, "neighbour"),
}
HELD_OUT = ("one-request", "lock", "cpu")


def number_device(mount: Path) -> str:
    """Return MAJ:MIN of the device below a directory."""
    block = find_block_device(mount)
    return f"{block.major}:{block.minor}"


@contextmanager
def open_group(controller: str) -> Iterator[Path]:
    """Make a cgroup (version 1); whoever is still in it at the end goes to the root."""
    group = Path("/sys/fs/cgroup") / controller / f"complaint-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def _call(world: World, arguments: Sequence[str]) -> str:
    """Run knobscope where no results of other devices lie; return what it prints."""
    command = [sys.executable, "-m", "knobscope", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=world.home)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def attach(world: World, case: Case, seconds: float, monitor: str) -> tuple[dict[str, Any], str]:
    """Watch a server; return the diagnosis as data and as text."""
    out = world.home / f"{monitor}.json"
    words = ["attach", "--pid", str(case.pid), "--for", f"{seconds}s", "--json", str(out), "--monitor", monitor]
    text = _call(world, [*words, "--root", str(ROOT), *case.options])
    return json.loads(out.read_text()), text


@dataclass(frozen=True)
class Answer:
    """What attach says."""

    at_fault: str
    is_device: bool


def ask(name: str, args: argparse.Namespace) -> dict[str, Answer]:
    """Cause a complaint and return what attach says, by monitor."""
    cause, _ = COMPLAINTS[name]
    with open_world() as world:
        case = cause(world)
        time.sleep(_WARM_S)
        if args.no_attach:
            return {}
        answers = {}
        for monitor in ("bpf", "procfs") if args.without_bpf else ("bpf",):
            document, text = attach(world, case, args.seconds, monitor)
            answers[monitor] = Answer(document["at_fault"], document["is_device"])
            if args.out:
                (args.out / f"{name}-{monitor}.json").write_text(json.dumps(document))
            said = text if args.text else text.split("\n\n")[0]
            print(f"-- {name} ({monitor})\n{said.rstrip()}\n", flush=True)
        return answers


def main() -> None:
    """Ask about the complaints one after another, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=COMPLAINTS, default=list(COMPLAINTS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--without-bpf", action="store_true", help="watch a second window without BPF")
    parser.add_argument("--text", action="store_true", help="print all that attach says")
    parser.add_argument("--no-attach", action="store_true", help="only start the load")
    parser.add_argument("--out", type=Path, help="keep the JSON documents in this directory")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ensure_calibrated()
    answers = {name: ask(name, args) for name in args.only}
    if not args.no_attach:
        print_scores(answers)


def print_scores(answers: Mapping[str, Mapping[str, Answer]]) -> None:
    """Print a row per complaint, and how many are right."""
    print("| complaint | what is wrong | with BPF | without |\n|---|---|---|---|")
    for complaint, said in answers.items():
        cause, truth = COMPLAINTS[complaint]
        names = [answer.at_fault for answer in said.values()]
        cells = [name if name == truth else f"{name} (wrong: {truth})" for name in names]
        print(f"| {complaint}{' *' if complaint in HELD_OUT else ''} | {cause.__doc__} | {' | '.join(cells)} |")
    for title, names in (("all", tuple(answers)), ("held out (*)", HELD_OUT)):
        asked = [name for name in answers if name in names]
        right = sum(answers[name]["bpf"].at_fault == COMPLAINTS[name][1] for name in asked)
        print(f"{title}: {right} of {len(asked)} right", end="")
        compared = [name for name in asked if "procfs" in answers[name]]
        same = sum(len({answer.at_fault for answer in answers[name].values()}) == 1 for name in compared)
        alike = sum(len({answer.is_device for answer in answers[name].values()}) == 1 for name in compared)
        more = f"; without BPF the same for {same} of {len(compared)}, device or not for {alike}"
        print(more if compared else "")


if __name__ == "__main__":
    main()

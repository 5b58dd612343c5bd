"""Compares what `knobscope attach` says with BPF and without, on the settings and devices of verdicts.py.

Run as root from the checkout, on a quiet machine:

    .venv/bin/python benchmarks/without_bpf.py [--only DBMS ...] [--devices NAME ...] [--seconds 8]

Every case is a real server under the load of its own client, with one setting of benchmarks/verdicts/studies changed.
Three windows are watched one after another: with BPF, with `--monitor procfs`, and with BPF again. How often the first
and the last agree is what a load that changes by itself allows; no truth is known here (complaints.py has that).
"""

import argparse
import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from complaint_servers import Postgresql, World, open_world, start_mariadb, start_redis
from complaints import Answer, Case, attach
from scores import tell_share

from knobscope.devices.calibration import ensure_calibrated

_WARM_S = 3
_WINDOWS = ("bpf", "procfs", "bpf")
_DEVICES = ("nvme-consumer", "slow-unit")
_CLIENTS = (1, 8)


def _redis(world: World, mount: Path, clients: int, settings: Mapping[str, Any]) -> Case:
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    pid, benchmark = start_redis(world, mount, *words)
    world.start(*benchmark, "-t", "set,get", "-c", str(clients), "-d", "1000", "-r", "2000")
    return Case(pid)


def _postgresql(world: World, mount: Path, clients: int, settings: Mapping[str, Any]) -> Case:
    server = Postgresql.start(world, mount, 2, **settings)
    server.load("-c", str(clients))
    return Case(server.pid)


def _mariadb(world: World, mount: Path, clients: int, settings: Mapping[str, Any]) -> Case:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    pid, sysbench = start_mariadb(world, mount, 20_000, *words)
    world.start(*sysbench, f"--threads={clients}", "oltp_read_write", "run")
    return Case(pid)


#: DBMS -> how it is started under load, and the settings that are looked at.
SETTINGS: Mapping[str, tuple[Callable[..., Case], Sequence[Mapping[str, Any]]]] = {
    "redis": (
        _redis,
        [
            {"appendonly": "yes", "appendfsync": "always"},
            {"appendonly": "yes", "appendfsync": "everysec"},
            {"appendonly": "yes", "appendfsync": "always", "io-threads": 2},
        ],
    ),
    "postgresql": (
        _postgresql,
        [{}, {"synchronous_commit": "off"}, {"wal_sync_method": "open_datasync"}, {"commit_delay": 2000}],
    ),
    "mariadb": (
        _mariadb,
        [
            {},
            {"innodb_flush_log_at_trx_commit": 0},
            {"innodb_flush_log_at_trx_commit": 2},
            {"log_bin": "on", "sync_binlog": 1},
        ],
    ),
}


def watch(dbms: str, device: str, clients: int, settings: Mapping[str, Any], seconds: float) -> list[Answer]:
    """Start a server under load; return what attach says of each window."""
    with open_world() as world:
        case = SETTINGS[dbms][0](world, world.open_device(device), clients, settings)
        time.sleep(_WARM_S)
        documents = [attach(world, case, seconds, monitor)[0] for monitor in _WINDOWS]
        return [Answer(document["at_fault"], document["is_device"]) for document in documents]


def list_cases(args: argparse.Namespace) -> Iterator[tuple[str, str, int, Mapping[str, Any]]]:
    """Yield every case that is asked for."""
    for dbms in args.only:
        yield from itertools.product([dbms], args.devices, _CLIENTS, SETTINGS[dbms][1])


def print_share(title: str, pairs: Sequence[tuple[object, object]]) -> None:
    """Print how many of some pairs are equal, and the lower end of the interval of their share."""
    same = sum(first == second for first, second in pairs)
    print(f"{title}: {same} of {len(pairs)}, {tell_share(same, len(pairs))}")


def main() -> None:
    """Watch every case, print it, and the agreement at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="DBMS")
    parser.add_argument("--devices", nargs="+", default=_DEVICES, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ensure_calibrated()
    print("| DBMS | device | clients | settings | with BPF | without | with BPF again |\n|---|---|---|---|---|---|---|")
    said: list[list[Answer]] = []
    for dbms, device, clients, settings in list_cases(args):
        answers = watch(dbms, device, clients, settings, args.seconds)
        words = " ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"
        cells = " | ".join(answer.at_fault for answer in answers)
        print(f"| {dbms} | {device} | {clients} | {words} | {cells} |", flush=True)
        said.append(answers)
    for title, other in (("the same cause without BPF", 1), ("the same cause with BPF again", 2)):
        print_share(title, [(answers[0].at_fault, answers[other].at_fault) for answers in said])
    print_share("device or not, without BPF", [(answers[0].is_device, answers[1].is_device) for answers in said])


if __name__ == "__main__":
    main()

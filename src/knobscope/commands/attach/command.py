"""`knobscope attach`: diagnoses a DBMS server that runs already, where it is."""

import argparse
import re
import sys
import time
from pathlib import Path

from knobscope.commands.attach.connecting import PASSWORD, ask_server
from knobscope.commands.attach.data import find_data
from knobscope.commands.attach.diagnosis import Diagnosis, Subject, diagnose
from knobscope.commands.attach.program import identify
from knobscope.commands.attach.settings import read_arguments
from knobscope.commands.attach.target import find_target
from knobscope.commands.attach.text import format_diagnosis
from knobscope.devices import find_block_device
from knobscope.errors import UserError
from knobscope.watch import Watch, open_watch

__all__ = ["add_parser"]

_UNIT = 4096


def _run(args: argparse.Namespace) -> int:
    subject = _find_subject(args)
    print(f"knobscope: {subject.describe()}", file=sys.stderr)
    with open_watch(subject.data.block, _UNIT, "process") as watch:
        if watch.reason is not None:
            print(watch.describe_fallback(), file=sys.stderr)
        diagnosis = _watch_window(watch, subject, args.seconds)
    print(format_diagnosis(diagnosis), end="")
    return 0


def _find_subject(args: argparse.Namespace) -> Subject:
    target = find_target(args)
    running = identify(target.pid, args.root)
    device = None if args.device is None else find_block_device(args.device)
    data = find_data(target.pid, target.pids, device)
    settings = read_arguments(running, target.pid)
    if args.connect is None:
        return Subject(target, running, data, settings)
    if running.dbms is None:
        raise UserError(f"--connect: no spec knows {running.program}, so nobody has said how to ask it")
    answers = ask_server(running.dbms, args.connect)
    return Subject(target, running, data, {**settings, **answers.settings}, answers.tables)


def _watch_window(watch: Watch, subject: Subject, seconds: float) -> Diagnosis:
    before = subject.data.read_trees()
    watch.attach(subject.target.place)
    watch.begin()
    time.sleep(seconds)
    profile = watch.end()
    return diagnose(subject, profile, [*before, *subject.data.read_trees()])


def _parse_seconds(text: str) -> float:
    units = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|)", text)
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a time like 60s or 5min")
    return float(found[1]) * units[found[2]]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "attach",
        help="diagnose a DBMS server that runs already",
        description="Watch a running DBMS server where it is, without a restart or a change of it, and say what holds "
        "it back: flushes, reads, writes, the processors, locks, or nothing.",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, help="a process of the server")
    target.add_argument("--unit", help="its systemd unit")
    target.add_argument(
        "--container", metavar="NAME", help="its container: name or id, of podman, docker or containerd"
    )
    target.add_argument("--cgroup", metavar="PATH", help="its cgroup (version 2)")
    target.add_argument("--port", type=int, help="the TCP port that it listens on")
    parser.add_argument(
        "--for", dest="seconds", type=_parse_seconds, default=60.0, metavar="TIME", help="how long, e.g. 60s or 5min"
    )
    parser.add_argument(
        "--device",
        type=Path,
        metavar="DEV",
        help="the device to watch: its node, or a path on it (default: that of the data)",
    )
    parser.add_argument(
        "--move",
        action="store_true",
        help="put a server that shares its cgroup with others into one of its own meanwhile",
    )
    parser.add_argument(
        "--connect",
        metavar="URL",
        help="also ask the server for its settings and tables, on a connection that only reads, e.g. "
        f"postgresql://me@127.0.0.1:5432/shop; a password that is not in the URL is read from {PASSWORD}",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are used")
    parser.set_defaults(run=_run)

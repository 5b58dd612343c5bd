"""`knobscope watch`: runs any command and tells what it did to a device."""

import argparse
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from knobscope.devices import BlockDevice, find_block_device
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.watch.conclusion import conclude
from knobscope.watch.files import FileTree, mounts_on, name_files, search_device
from knobscope.watch.interface import FileScope, ProbeName, Profile, Scope, Watch
from knobscope.watch.opening import LIGHT_HELP, open_watch
from knobscope.watch.other_programs import OtherPrograms
from knobscope.watch.recording import require_replaceable
from knobscope.watch.text import format_profile

_GATE = Path(__file__).with_name("gate.py")


class WatchDocument(Profile):
    """What `knobscope watch` writes: the profile of a command, with the columns of docs/reference/tables.md."""

    command: list[str]
    device: str  # MAJ:MIN
    name: str


def _run(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UserError("watch: expected a command after `--`, for example `knobscope watch -- fio job.fio`")
    if shutil.which(command[0]) is None:
        raise UserError(f"watch: there is no program {command[0]!r} to run")
    block = _find_device(args.device or ".")
    scope: Scope = args.scope or ("device" if args.device else "process")
    if args.calls and "syscalls" not in args.probes:
        raise UserError("--call: found no --with syscalls; expected it, as calls are counted only then")
    if args.light and (args.trace or args.scope == "process"):
        other = "--trace" if args.trace else "--scope process"
        raise UserError(f"watch: found {other} with --light, which has only sums of the whole device; drop one of them")
    if args.trace:
        require_replaceable(args.trace)
    spool = args.trace.parent if args.trace else None
    choice = {"probes": args.probes, "files": args.files, "calls": args.calls, "trace": spool, "light": args.light}
    with open_watch(block, args.unit, scope, **choice) as watch:
        if watch.reason is not None:
            print(watch.describe_fallback(), file=sys.stderr)
        for probe, reason in watch.missing_probes.items():
            print(f"knobscope: {probe} cannot be watched ({reason})", file=sys.stderr)
        code, profile = _watch_command(command, watch, (lambda: None) if args.no_sync else lambda: _write_back(block))
        trees = search_device(block, profile, Path.cwd())
        unwritten = _write_trace(watch, args.trace, trees) if args.trace else None
    profile["files"] = name_files(profile, trees)
    profile.pop("addresses", None)  # they are in `files` now
    where = {"device": f"{block.major}:{block.minor}", "name": block.name, "unit": args.unit}
    head = f"\n{conclude(profile)}\n\n{' '.join(command)}\non {block.name}"
    print(f"{head}, {format_profile(profile)}", end="", file=sys.stderr)
    write_document(args, {"command": command, **where, **profile})
    if unwritten is not None:
        raise unwritten
    return code


def _write_trace(watch: Watch, directory: Path, trees: Sequence[FileTree]) -> UserError | None:
    """Write the trace, and return what hindered that: the profile is there all the same."""
    try:
        counts = watch.write_trace(directory, trees)
    except UserError as error:
        return error
    if counts is None:
        print("knobscope: single requests cannot be traced without BPF", file=sys.stderr)
    else:
        print(f"knobscope: {counts[0]} requests recorded in {directory}, {counts[1]} lost", file=sys.stderr)
    return None


def _find_device(text: str) -> BlockDevice:
    """Return the device meant by a path, MAJ:MIN or the kernel's name for it."""
    is_number = re.fullmatch(r"\d+:\d+", text)
    if not is_number and Path(text).exists():
        return find_block_device(Path(text))
    entry = Path("/sys/dev/block" if is_number else "/sys/class/block", Path(text).name)
    if "/" in text or not (entry / "dev").exists():
        raise UserError(f"--device: there is no {text}; expected a path, a device like sda or /dev/sda, or MAJ:MIN")
    major, minor = (entry / "dev").read_text().strip().split(":")
    return BlockDevice(entry.resolve().name, int(major), int(minor))


def _watch_command(command: Sequence[str], watch: Watch, write_back: Callable[[], None]) -> tuple[int, Profile]:
    """Watch the command from its first request on; return its exit code (128 + signal) and its profile."""
    gate, opener = os.pipe()
    child = subprocess.Popen([sys.executable, "-I", "-S", str(_GATE), str(gate), *command], pass_fds=[gate])
    os.close(gate)
    with _child_decides(child):
        watch.follow([child.pid])
        watch.begin()
        others = OtherPrograms([os.getpid()])
        os.write(opener, b"!")
        os.close(opener)
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # not yet reaped: its CPU time is still there
        write_back()
        profile = watch.end()
        profile["other_programs"] = others.list_shares()
    child.wait()
    code = ended.si_status if ended and ended.si_code == os.CLD_EXITED else 128 - child.returncode
    return code, profile


@contextlib.contextmanager
def _child_decides(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Leave Ctrl-C to the command, which gets it from the terminal too, and pass other requests to end on to it."""
    handlers = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for number in (signal.SIGTERM, signal.SIGHUP):
        handlers[number] = signal.signal(number, lambda received, _: child.send_signal(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _write_back(block: BlockDevice) -> None:
    """Write what the command left in the page cache: it is the command's doing, only later."""
    for mount in mounts_on(block):
        _sync_filesystem(mount.point)


def _sync_filesystem(directory: Path) -> None:
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except PermissionError:
        os.sync()  # of all file systems: that is allowed to everybody
        return
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise UserError(f"watch: {directory} cannot be written back: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def _read_size(text: str) -> int:
    from knobscope.specs.models.quantity import Size  # with it comes pydantic, later than the monitor's programs

    return Size.read_bytes(text)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "watch",
        help="run a command and show its I/O profile",
        description="Run any command under the monitor and tell what reached the device: requests, sizes, alignment, "
        "order, depth, latency, and who caused them. The profile goes to stderr; output and exit code are those of the "
        "command. What it leaves in the page cache is written back before the profile is taken.",
    )
    parser.add_argument(
        "--device", metavar="DEV", help="a path on it, its node or name, or MAJ:MIN (default: that of this directory)"
    )
    add_json_argument(parser, WatchDocument, may_be_file=True)
    parser.add_argument(
        "--unit",
        type=_read_size,
        default=4096,
        metavar="SIZE",
        help="what aligned is a multiple of, in bytes or e.g. 32KiB (default: %(default)s)",
    )
    parser.add_argument(
        "--scope",
        choices=("device", "process"),
        help="count everything on the device, or only what the command caused; flushes, which have no owner, always "
        "count (default: device with --device, else process)",
    )
    parser.add_argument(
        "--with",
        dest="probes",
        action="append",
        default=[],
        choices=get_args(ProbeName),
        help="watch this of the command too (repeatable)",
    )
    parser.add_argument(
        "--files",
        choices=get_args(FileScope),
        default="all",
        help="with syscalls or faults: count those on all files, or on files of the device only (default: %(default)s)",
    )
    parser.add_argument(
        "--call",
        dest="calls",
        action="append",
        default=[],
        metavar="NAME",
        help="with syscalls: count only calls of this name (repeatable)",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="DIR",
        help="also write every request into this directory, as parquet, for `knobscope trace`; best on another device",
    )
    parser.add_argument("--light", action="store_true", help=LIGHT_HELP)
    parser.add_argument("--no-sync", action="store_true", help="take the profile at once when the command has ended")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the command to run")
    parser.set_defaults(run=_run)

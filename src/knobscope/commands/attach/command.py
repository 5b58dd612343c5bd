"""`knobscope attach`: diagnoses a DBMS server that runs already, where it is."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from knobscope.commands.attach.capability import find_profile, measure_device
from knobscope.commands.attach.connecting import PASSWORD, ask_server
from knobscope.commands.attach.data import find_data
from knobscope.commands.attach.diagnosis import AttachDocument, Diagnosis, Subject, diagnose
from knobscope.commands.attach.live import REFRESH_S, interruptible, show_live
from knobscope.commands.attach.page import render_page
from knobscope.commands.attach.program import identify
from knobscope.commands.attach.settings import read_arguments, read_variables
from knobscope.commands.attach.study import check_place, write_study
from knobscope.commands.attach.sums import read_sums
from knobscope.commands.attach.surroundings import Surroundings, read_surroundings
from knobscope.commands.attach.target import find_target
from knobscope.commands.attach.text import format_diagnosis
from knobscope.devices import find_block_device
from knobscope.documents import add_json_argument, out_file, write_document
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.specs.models.quantity import Duration
from knobscope.tables import DeviceProfile
from knobscope.watch import OtherPrograms, Watch, open_watch
from knobscope.watch.opening import LIGHT_HELP, LIGHT_RATE
from knobscope.watch.text import format_losses

_UNIT = 4096
_STEP_S = 0.1


def _run(args: argparse.Namespace) -> int:
    subject = _find_subject(args)
    if args.write_study:
        check_place(args.write_study, subject.running)
    print(f"knobscope: {subject.describe()}", file=sys.stderr)
    device = measure_device(args.characterise, subject.data, args.profile) if args.characterise else None
    device = device or find_profile(args.profile, subject.data)
    unit = (device and device.get("write_unit_bytes")) or _UNIT
    is_live = args.seconds is None and sys.stdout.isatty() and not (args.json or args.html or args.write_study)
    choice = {"probes": ("waits",), "light": args.light}
    with interruptible() as is_over, open_watch(subject.data.block, unit, "process", args.monitor, **choice) as watch:
        if is_over():
            raise KeyboardInterrupt  # before there was anything to say
        if watch.monitor == "light" and not args.light:
            print(f"knobscope: more than {LIGHT_RATE:,} requests/s: light mode (--no-light)", file=sys.stderr)
        if watch.reason is not None:
            print(watch.describe_fallback(), file=sys.stderr)
        for probe, reason in watch.missing_probes.items():
            print(f"knobscope: {probe} cannot be watched ({reason})", file=sys.stderr)
        window = _Window(watch, subject, unit, device, is_over, (lambda: None) if is_live else partial(_announce, args))
        diagnosis = (
            show_live(lambda: window.watch(REFRESH_S), lambda: is_over() or not window.is_alive())
            if is_live
            else window.watch(args.seconds)
        )
    if not write_document(args, diagnosis.document()):
        print(format_diagnosis(diagnosis), end="")
    _write(args, diagnosis)
    return 0


def _announce(args: argparse.Namespace) -> None:
    how_long = "until Ctrl-C" if args.seconds is None else f"for {args.seconds:g} s"
    print(f"knobscope: watching {how_long}", file=sys.stderr, flush=True)


def _write(args: argparse.Namespace, diagnosis: Diagnosis) -> None:
    if args.html:
        write_text(args.html, render_page(diagnosis))
    if args.write_study:
        written = write_study(args.write_study, diagnosis, args.root)
        message = (
            f"wrote {', '.join(map(str, written))}" if written else "no study written: no knob controls the bottleneck"
        )
        print(f"knobscope: {message}", file=sys.stderr)


def _find_subject(args: argparse.Namespace) -> Subject:
    target = find_target(args)
    running = identify(target.pid, args.root)
    device = None if args.device is None else find_block_device(args.device)
    data = find_data(target.pid, target.began, device)
    settings = read_variables(running, target.pid) | read_arguments(running, target.pid)
    if args.connect is None:
        return Subject(target, running, data, settings)
    if running.dbms is None:
        raise UserError(f"--connect: no spec knows {running.program}, so nobody has said how to ask it")
    answers = ask_server(running.dbms, args.connect)
    return Subject(target, running, data, {**settings, **answers.settings}, answers.tables)


class _Window:
    """Watches a server for one window after another."""

    def __init__(
        self,
        watch: Watch,
        subject: Subject,
        unit: int,
        device: DeviceProfile | None,
        is_over: Callable[[], bool],
        announce: Callable[[], None],
    ) -> None:
        self._watch, self._subject, self._unit, self._device, self._is_over = watch, subject, unit, device, is_over
        self._announce = announce

    def watch(self, seconds: float | None) -> Diagnosis:
        """Return what so many seconds say; None: until somebody asks to end, or the server does."""
        data = self._subject.data
        before = data.read_trees()
        self._watch.attach(self._subject.target.place)
        self._watch.begin()
        if not self.is_alive():  # another process may have its number, and be watched by now
            raise UserError(f"attach: process {self._subject.target.pid} has ended")
        others = OtherPrograms([os.getpid(), *self._subject.target.list_processes()])
        self._announce()
        sums, surroundings = read_sums(data.block, self._subject.target), self._read_surroundings()
        self._wait(seconds)
        profile = self._watch.end()
        profile["other_programs"] = others.list_shares()
        window_sums = (sums, read_sums(data.block, self._subject.target)) if profile["monitor"] != "bpf" else None
        limits = format_losses(profile).splitlines()
        trees, both = before, None
        try:
            trees, both = [*before, *data.read_trees()], (surroundings, self._read_surroundings())
        except OSError:
            if self.is_alive():
                raise
        if not self.is_alive():
            limits.insert(0, f"process {self._subject.target.pid} ended during the window")
        return diagnose(self._subject, profile, trees, self._unit, self._device, limits, window_sums, both)

    def _read_surroundings(self) -> Surroundings:
        target = self._subject.target
        return read_surroundings(self._subject.data.block, target.pid, target.list_processes())

    def _wait(self, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while not self._is_over() and self.is_alive():
            remaining_s = _STEP_S if end is None else end - time.monotonic()
            if remaining_s <= 0:
                return
            time.sleep(min(remaining_s, _STEP_S))

    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self._subject.target.is_alive


def _read_seconds(text: str) -> float:
    duration = Duration.of_argument(text)
    if not duration.ns:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected more than no time")
    return duration.s


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "attach",
        help="diagnose a DBMS server that runs already",
        description="Watch a running DBMS server where it is, without a restart or a change of it, and say what holds "
        "it back: flushes, reads, writes, the processors, locks, or nothing. Without --for it watches until Ctrl-C, "
        "in a terminal with a screen that is refreshed.",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, help="a process of the server")
    target.add_argument("--unit", help="its systemd unit")
    target.add_argument(
        "--container", metavar="NAME", help="its container: name or id, of podman, docker, containerd or CRI-O"
    )
    target.add_argument("--cgroup", metavar="PATH", help="its cgroup (version 2)")
    target.add_argument("--port", type=int, help="the TCP port that it listens on")
    parser.add_argument(
        "--for", dest="seconds", type=_read_seconds, metavar="TIME", help="how long to watch, e.g. 60s or 5min"
    )
    add_json_argument(parser, AttachDocument, may_be_file=True)
    parser.add_argument("--html", type=out_file, metavar="PAGE", help="also write a page")
    parser.add_argument(
        "--write-study",
        type=Path,
        metavar="FILE",
        help="write the study to run next, e.g. specs/studies/why.yaml: its baseline is what is in force, its knobs "
        "are those that control the bottleneck",
    )
    parser.add_argument(
        "--connect",
        metavar="URL",
        help="also ask the server for its settings and tables, on a connection that only reads, e.g. "
        f"postgresql://me@127.0.0.1:5432/shop; a password that is not in the URL is read from {PASSWORD}",
    )
    parser.add_argument(
        "--move",
        action="store_true",
        help="put a server that shares its cgroup with others into one of its own meanwhile; without, its processes "
        "are followed one by one",
    )
    parser.add_argument(
        "--device",
        type=Path,
        metavar="DEV",
        help="the device to watch: its node, or a path on it (default: that of the data)",
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="JSON",
        help="profile of the device, as `knobscope characterise` writes it (default: the latest one below results)",
    )
    parser.add_argument(
        "--characterise",
        type=Path,
        metavar="DIR",
        help="measure the device with fio first, on a file in this directory: that slows down everyone on the device "
        "for about a minute; --profile then says where to keep what was measured",
    )
    parser.add_argument(
        "--monitor",
        choices=("bpf", "procfs"),
        default="bpf",
        help="procfs: do with the kernel's sums, as where BPF is not permitted (default: %(default)s)",
    )
    parser.add_argument(
        "--light",
        action=argparse.BooleanOptionalAction,
        help=f"{LIGHT_HELP} (default: if the device has more than {LIGHT_RATE:,} requests per second)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(),
        help="the checkout whose specs are used (default: this folder; where it has none, the shipped specs are used)",
    )
    parser.set_defaults(run=_run)

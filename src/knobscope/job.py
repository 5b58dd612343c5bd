"""Runs a command as a job of the Snakefile: what it says goes to a log, too, and its outputs are sealed."""

import argparse
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from knobscope.durable_files import create_file
from knobscope.sealing import break_seal, seal

_PIECE_BYTES = 1 << 16


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand `job`."""
    parser = subparsers.add_parser("job", help="run a command as the Snakefile does: keep its log, seal its outputs")
    parser.add_argument("--log", type=Path, required=True, help="file that gets all that the command prints")
    parser.add_argument(
        "--seal", type=Path, nargs="*", default=[], help="outputs whose checksums are written next to them"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="a command of knobscope")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit code. Only the outputs of a command that succeeded are sealed."""
    from knobscope.cli import main

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    for output in args.seal:
        break_seal(output)
    with _logged(args.log):
        code = main(command)
        if code == 0:
            for output in args.seal:
                seal(output)
    return code


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    """Copy to a file all that this process and its children print, as `tee` does, but never through a link."""
    sys.stdout.flush()
    sys.stderr.flush()
    file, streams = create_file(log), {number: os.dup(number) for number in (1, 2)}
    reading, writing = os.pipe()
    ended, ending = os.pipe()  # a child that still holds our output, as one of `multiprocessing`, is not waited for
    copier = os.fork()
    if copier == 0:
        os.close(writing)
        os.close(ending)
        _copy(reading, ended, [streams[1], file])
        os._exit(0)
    for number in streams:
        os.dup2(writing, number)
    for descriptor in (reading, writing, ended, file):
        os.close(descriptor)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream in streams.items():
            os.dup2(stream, number)
            os.close(stream)
        os.close(ending)
        os.waitpid(copier, 0)


def _copy(source: int, ended: int, targets: list[int]) -> None:
    """Copy until nobody can write to the source, or the command has ended (a pipe that is closed) and all is copied.

    A target that takes no more (a full disk) is left out.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # which are for the command; what it then says belongs to the log
        signal.signal(number, signal.SIG_IGN)
    while source in select.select([source, ended], [], [])[0]:
        piece = os.read(source, _PIECE_BYTES)
        if not piece:
            return
        waiting = [piece]
        while waiting:
            waiting += _write_to_all(waiting.pop(0), targets)


def _write_to_all(piece: bytes, targets: list[int]) -> Iterator[bytes]:
    """Write to each target, and take those out that refuse; yields what the others should say about that."""
    for target in list(targets):
        remaining = memoryview(piece)
        try:
            while remaining:
                remaining = remaining[os.write(target, remaining) :]
        except OSError as error:
            targets.remove(target)
            yield f"knobscope: what follows is not logged: {error.strerror}\n".encode()

"""The command line: one subcommand per stage, and tools for data you already have."""

import argparse
import contextlib
import importlib
import io
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

from knobscope import __version__
from knobscope.durable_files import DamagedFileError, set_aside
from knobscope.errors import UserError, show_controls
from knobscope.examples import EXAMPLES, add_examples

#: Commands in the order of the help text, and the modules that add them.
_COMMANDS = {
    "job": "knobscope.job",
    "init": "knobscope.commands.init",
    "validate": "knobscope.commands.specs",
    "schema": "knobscope.commands.specs",
    "rules": "knobscope.commands.specs",
    "doctor": "knobscope.commands.doctor.command",
    "drivers": "knobscope.generators.drivers",
    "introspect": "knobscope.commands.introspect.command",
    "startable": "knobscope.commands.startable.command",
    "durability": "knobscope.commands.durability",
    "plan": "knobscope.stages.plan.command",
    "characterise": "knobscope.stages.characterise.command",
    "devices": "knobscope.devices.command",
    "prepare": "knobscope.stages.prepare.command",
    "measure": "knobscope.stages.measure.command",
    "select": "knobscope.stages.select.command",
    "reinforce": "knobscope.stages.reinforce.command",
    "tune": "knobscope.stages.tune.command",
    "detect": "knobscope.stages.detect.command",
    "remeasure": "knobscope.stages.remeasure.command",
    "imitate": "knobscope.stages.imitate.command",
    "report": "knobscope.stages.report.command",
    "finding": "knobscope.commands.finding.command",
    "compare": "knobscope.commands.compare.command",
    "progress": "knobscope.commands.progress.command",
    "show": "knobscope.commands.show.command",
    "watch": "knobscope.watch.command",
    "attach": "knobscope.commands.attach.command",
    "judge": "knobscope.commands.judge",
    "trace": "knobscope.commands.trace.command",
    "io-knobs": "knobscope.commands.io_knobs.command",
    "models": "knobscope.commands.models.command",
    "crate": "knobscope.commands.crate.command",
    "export": "knobscope.commands.export.command",
    "import": "knobscope.commands.importing.command",
    "replay": "knobscope.commands.table.replay",
    "rank": "knobscope.commands.table.rank",
    "trend": "knobscope.commands.table.trend",
}

#: Command -> its words that have another name now, each with that name; the old ones work for one version.
_RENAMED = {
    "repeat": {"repeat": "reinforce"},
    "explain": {"explain": "remeasure", "--explained": "--remeasured"},
    "confirm": {"confirm": "imitate", "--confirmed": "--imitated"},
    "plan": {"--repeat": "--reinforce"},
}


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of one command: the others' modules take half a second."""
    parser = argparse.ArgumentParser(
        prog="knobscope",
        description="Finds the DBMS knobs that matter on a storage device, and where DBMS and device do not fit each "
        "other. A study runs with `snakemake`; each of its stages is a command here.",
    )
    parser.add_argument("--version", action="version", version=f"knobscope {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    modules = [_COMMANDS[command]] if command in _COMMANDS else dict.fromkeys(_COMMANDS.values())
    for module in modules:
        importlib.import_module(module).add_parser(subparsers)
    for name, parsed in subparsers.choices.items():
        add_examples(parsed, EXAMPLES.get(name, []))
    return parser


class _Printable:
    """A stream of text that shows control characters instead of sending them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):  # not every locale has a µ: no answer is lost for it
            stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        """Write a text; returns its length, as every stream does."""
        self._stream.write(show_controls(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 done, 1 failed, 2 wrong input."""
    out, errors = cast(TextIO, _Printable(sys.stdout)), cast(TextIO, _Printable(sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        return _run(sys.argv[1:] if arguments is None else arguments)


def _run(arguments: Sequence[str]) -> int:
    arguments = _rename(arguments)
    _refuse_unknown(arguments)
    try:
        args = build_parser(arguments[0] if arguments else None).parse_args(arguments)
        code = int(args.run(args))
        sys.stdout.flush()  # here, where a reader that has gone is no error
        return code
    except DamagedFileError as error:
        _say(_put_aside(error))
        return 2
    except UserError as error:
        _say(str(error))
        return 2
    except OSError as error:
        return _tell_of_system(error)
    except (MemoryError, RecursionError) as error:
        need = (
            "more memory than this process may have"
            if isinstance(error, MemoryError)
            else "to follow its input deeper than Python goes"
        )
        _say(f"{arguments[0]} needs {need}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _rename(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the names that its words have now, and say so where one has changed."""
    names = _RENAMED.get(arguments[0], {}) if arguments else {}
    new = [
        names.get(word, word) if not place or word.startswith("--") else word for place, word in enumerate(arguments)
    ]
    if changed := [(old, word) for old, word in zip(arguments, new, strict=True) if old != word]:
        former, current = (" ".join(part) for part in zip(*changed, strict=True))
        _say(f"{former} is now called {current}: write {current}")
    return new


def _refuse_unknown(arguments: Sequence[str]) -> None:
    """End like `argparse` where there is no such command, and name the nearest one instead of all."""
    if arguments and arguments[0] not in _COMMANDS and not arguments[0].startswith("-"):
        from knobscope.specs.reading.base import suggest  # takes several times as long to import as this module

        _say(f"no command {arguments[0]!r}; expected {suggest(arguments[0], list(_COMMANDS))}")
        raise SystemExit(2)


def _put_aside(error: DamagedFileError) -> str:
    """Rename a damaged file of a study, or of a device's store, and say so; what is not ours stays where it is."""
    if not (error.path.is_file() or error.path.is_dir()):
        return f"{error}; expected a regular file"
    if not any(part == "results" or part.startswith(".knobscope") for part in error.path.absolute().parts):
        return f"{error}; expected a file that knobscope wrote"
    try:
        return f"{error}; it is now {set_aside(error.path).name}, and the next call makes it anew"
    except OSError as refusal:
        return f"{error}; it cannot be renamed: {refusal.strerror}"


def _tell_of_system(error: OSError) -> int:
    """Say in a sentence what the system refused (a full disk, a read-only folder), if there is anywhere to say it."""
    if isinstance(error, BrokenPipeError) and _has_reader_left():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # lets Python's last flush succeed
        return 128 + signal.SIGPIPE
    if error.errno is None or isinstance(error, BrokenPipeError):
        raise error
    named = error.filename2 or error.filename  # of a file that could not be renamed, the name that was asked for
    where = f": {named}" if named else ""
    _say(f"the system refused it: {os.strerror(error.errno)}{where}")
    return 1


def _has_reader_left() -> bool:
    """Whether nobody reads standard output any more, as behind `| head`."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # standard error may be what is full
        print(f"knobscope: {sentence}", file=sys.stderr, flush=True)

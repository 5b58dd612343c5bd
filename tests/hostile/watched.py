"""Runs commands of knobscope one after another, and writes down what they touch: `python watched.py FOLDER < commands`.

Commands are a JSON list of argument lists. The answer is JSON on standard output: per command exit code, text and
traceback, and for all of them what Python's audit hook saw outside of FOLDER, and the peak of memory.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1]).resolve()
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: Event -> how many of its arguments are paths that are changed.
CHANGES = {"os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.mkdir": 1, "os.chmod": 1}
seen: list[str] = []


def is_inside(path: Any) -> bool:
    name = Path(os.fsdecode(path)).resolve()
    return name.is_relative_to(FOLDER) or name.parts[:2] == ("/", "proc") or name == Path("/dev/null")


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes):
        changes = bool(arguments[2] & WRITING)
        if changes and not is_inside(arguments[0]):
            seen.append(f"opens {arguments[0]!r} to write")
        if b"canary" in os.fsencode(arguments[0]):
            seen.append(f"opens {arguments[0]!r}")
    elif event in CHANGES and not all(map(is_inside, arguments[: CHANGES[event]])):
        seen.append(f"{event} {arguments}")
    elif event in ("socket.connect", "socket.sendto", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"):
        seen.append(f"{event} {arguments[:2]}")


def run(command: list[str]) -> dict[str, Any]:
    out, errors = io.StringIO(), io.StringIO()
    trace, code = "", -1
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(command)
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:  # noqa: BLE001 - the test shows it
            trace = traceback.format_exc()
    return {"code": code, "text": out.getvalue() + errors.getvalue(), "traceback": trace}


sys.dont_write_bytecode = True
tempfile.tempdir = str(FOLDER)
os.environ["MPLCONFIGDIR"] = str(FOLDER)
from knobscope.cli import main  # noqa: E402

commands = json.load(sys.stdin)
sys.addaudithook(watch)
answers = [run(command) for command in commands]
# Not ru_maxrss: a child begins with the peak of the process that started it.
peak = next(
    int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
)
print(json.dumps({"answers": answers, "seen": seen, "peak_kib": peak}))

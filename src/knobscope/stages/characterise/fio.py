"""Runs fio on one file of a device: the documented job files of `probes/fio`, filled in by environment variables."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from knobscope.devices import OpenDevice
from knobscope.errors import UserError
from knobscope.processes import supervise
from knobscope.shipped import SHIPPED

_JOBS = SHIPPED / "probes" / "fio"
_FILE_NAME = "fio.data"  # always the same: what a killed run left behind is overwritten and removed by the next
_SMALLEST_BYTES = 16 << 20
_MIB = 1 << 20
_TIMEOUT_S = 300
_RAMP = "50ms"


class FioRefusedError(Exception):
    """fio ended with an error; the message holds its own words."""


@dataclass(frozen=True)
class Engine:
    """How fio submits requests."""

    name: str
    direct: bool  # O_DIRECT: past the page cache

    def split(self, depth: int) -> tuple[int, int]:
        """Return requests in flight per job and number of jobs that together make this depth."""
        return (1, depth) if self.name == "psync" else (depth, 1)


#: In order of preference; the last one measures the page cache with the device behind it, and profiles say so.
_ENGINES = [Engine("libaio", True), Engine("io_uring", True), Engine("psync", True), Engine("psync", False)]


@dataclass(frozen=True)
class FioFile:
    """A laid-out file on the device, and how fio can reach it."""

    program: str
    path: Path
    bytes: int
    engine: Engine

    @cached_property
    def version(self) -> str:
        """What ``fio --version`` prints."""
        return subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def run_window(self, job: str, window_ms: int, variables: Mapping[str, object]) -> dict[str, Any]:
        """Run a job file (its name without suffix) for so long; returns fio's figures of the job.

        Raises FioRefusedError when fio fails.
        """
        timing = {"WINDOW": f"{window_ms}ms", "RAMP": _RAMP}
        return _run(self.program, job, self._target | timing | dict(variables), self.path.parent)

    def replay(
        self, writes: Sequence[tuple[int, int]], *, durable: bool, longest_ms: int
    ) -> list[tuple[int, int, int]]:
        """Carry out writes (offset, bytes) one after the other, as many as the time allows.

        `durable`: each is answered when it survives a power cut (O_DSYNC). Returns (offset, bytes, ns) of each; raises
        FioRefusedError when fio fails.
        """
        trace, log = self.path.with_suffix(".trace"), self.path.with_suffix(".log")
        lines = [f"{self.path.name} write {offset} {size}" for offset, size in writes]
        header = ["fio version 2 iolog", f"{self.path.name} add", f"{self.path.name} open"]
        times = log.parent / f"{log.name}_lat.1.log"
        try:
            trace.write_text("\n".join([*header, *lines, f"{self.path.name} close"]) + "\n")
            variables = {"TRACE": trace.name, "LOG": log.name, "SYNC": "dsync" if durable else "none"}
            _run(self.program, "replay", self._target | variables | {"WINDOW": f"{longest_ms}ms"}, self.path.parent)
            rows = [line.split(",") for line in times.read_text().splitlines()]
        finally:
            trace.unlink(missing_ok=True)
            times.unlink(missing_ok=True)
        return [(int(row[4]), int(row[3]), int(row[1])) for row in rows]

    @property
    def _target(self) -> dict[str, object]:
        return _variables_of(self.bytes, self.engine)


def find_fio() -> str:
    """Return the path of fio; raises UserError with the command that installs it."""
    path = shutil.which("fio")
    if path is None:
        raise UserError("no program fio on PATH; it measures devices. Install it: apt-get install fio")
    return path


@contextmanager
def lay_out_file(opened: OpenDevice, wanted_bytes: int) -> Iterator[FioFile]:
    """Yield a file on the device that was written once from front to back; it is removed at the end.

    At most half of the free space is used. Raises UserError when fio is missing, space is short or fio cannot write.
    """
    program = find_fio()
    path = opened.directory / _FILE_NAME
    path.unlink(missing_ok=True)
    opened.require_free(2 * _SMALLEST_BYTES, "a test file")
    size = min(wanted_bytes, opened.free_bytes // 2) // _MIB * _MIB
    try:
        yield FioFile(program, path, size, _lay_out(program, opened, size))
    finally:
        path.unlink(missing_ok=True)


def _lay_out(program: str, opened: OpenDevice, size: int) -> Engine:
    """Write the file with the first engine that can, and return that engine."""
    refusals = []
    for engine in _ENGINES:
        try:
            _run(program, "layout", _variables_of(size, engine), opened.directory)
        except FioRefusedError as error:
            refusals.append(f"{engine.name}{' with O_DIRECT' if engine.direct else ''}: {error}")
        else:
            return engine
    raise UserError(f"device {opened.name}: fio cannot write to {opened.directory}; it says\n" + "\n".join(refusals))


def _variables_of(size: int, engine: Engine) -> dict[str, object]:
    return {"FILE": _FILE_NAME, "BYTES": size, "ENGINE": engine.name, "DIRECT": int(engine.direct)}


def _run(program: str, job: str, variables: Mapping[str, object], directory: Path) -> dict[str, Any]:
    """Run fio in the directory, so that no path has to be in its syntax; returns the figures of the only job."""
    env = os.environ | {f"KNOBSCOPE_{name}": str(value) for name, value in variables.items()}
    command = [program, "--output-format=json", str(_JOBS / f"{job}.fio")]
    process = supervise(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory, env=env)
    try:
        out, err = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise FioRefusedError(f"no end of {job} after {_TIMEOUT_S} s") from error
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate()
    if process.returncode != 0:
        raise FioRefusedError(_pick_reason(err.decode(errors="replace")) or f"exit code {process.returncode}")
    text = out.decode()
    figures: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]  # notes of fio may stand before it
    return figures


def _pick_reason(text: str) -> str:
    """Return what fio complained about, in one line."""
    lines = [line.removeprefix("fio: ").strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-3:])

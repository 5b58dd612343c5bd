"""Folders of a user's own with studies in them, and how Snakemake is called on these."""

import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from knobscope.characterise.profile import measure_profile
from knobscope.characterise.schedule import QUICK
from knobscope.devices import open_device
from knobscope.specs import Device, read_spec
from knobscope.storage import write_sealed

__all__ = ["call", "call_unchecked", "command", "make_folder", "place_profile", "query", "write_study"]

ROOT = Path(__file__).parents[1]


def make_folder(folder: Path) -> Path:
    """Make the folder, with all specs that are shipped, but no study."""
    (folder / "specs/studies").mkdir(parents=True)
    for kind in ("dbms", "devices", "workloads"):
        (folder / "specs" / kind).symlink_to(ROOT / "specs" / kind)
    return folder


def write_study(folder: Path, name: str, text: str) -> Path:
    """Write the spec of a study."""
    path = folder / f"specs/studies/{name}.yaml"
    path.write_text(text)
    return path


def place_profile(folder: Path, *names: str) -> None:
    """Give studies the profile of their device, so that they need not measure it: it is measured once for all tests."""
    for name in names:
        write_sealed(folder / f"results/{name}/devices/here.json", _profile())


@cache
def _profile() -> dict[str, Any]:
    """Measure the shipped device with the shortest windows that give numbers, in a directory of this process alone."""
    device = read_spec(ROOT / "specs/devices/here.yaml", Device, None)[1]
    root = tempfile.TemporaryDirectory(prefix="knobscope-test-", dir="/var/tmp")
    with root as name, open_device(device, Path(name), "profile") as opened:
        return measure_profile(opened, replace(QUICK, file_bytes=16 << 20, window_ms=50, repeats=1, replay_ms=300))


def command(folder: Path, name: str, *more: str) -> list[str]:
    """Return the command that runs a study of the folder."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)),
        *("--profile", str(ROOT / "profiles/default"), "--cores", "2", *more),
        *("--config", f"study=specs/studies/{name}.yaml"),
    ]


def call_unchecked(folder: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a study, whatever comes of it."""
    return subprocess.run(command(folder, name, *more), capture_output=True, text=True, timeout=600, check=False)


def call(folder: Path, name: str, *more: str) -> str:
    """Run a study to its end; returns what Snakemake said."""
    done = call_unchecked(folder, name, *more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def query(folder: Path, name: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that a finished study's database answers."""
    with duckdb.connect(str(folder / f"results/{name}/study.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()

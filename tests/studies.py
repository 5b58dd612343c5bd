"""Folders of a user's own with studies in them, and how Snakemake is called on these."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from shipped_specs import ROOT, SPECS

#: The smallest study that has every part.
SMALL = """
name: small
description: the smallest study there is
dbms: [sqlite]
devices: [local-disk]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.5}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    journal_mode: {values: [delete, wal]}
    wal_autocheckpoint: {values: [1, 1000]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {top: 1}
sweep: {repeats: 2, always: [synchronous, journal_mode, wal_autocheckpoint]}
rules: [intuition]
remeasure: {findings: 0}
"""


def make_folder(folder: Path, *own: str) -> Path:
    """Make the folder, with all specs that are shipped, but no study, and none of the kinds that are its `own`."""
    for kind in ("studies", *own):
        (folder / "specs" / kind).mkdir(parents=True)
    for kind in {"dbms", "devices", "generators", "workloads"}.difference(own):
        (folder / "specs" / kind).symlink_to(SPECS / kind)
    return folder


def write_study(folder: Path, name: str, text: str) -> Path:
    """Write the spec of a study."""
    path = folder / f"specs/studies/{name}.yaml"
    path.write_text(text)
    return path


def make_once(path: Path, make: Callable[[Path], object]) -> Path:
    """Make a file or folder that all processes of a test run share; returns its path."""
    done = path.with_name(f"{path.name}.done")
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(path, ignore_errors=True)  # what a call that failed has left
            make(path)
            done.touch()
    return path


def finish_small(folder: Path) -> None:
    """Run the study `small` in a folder of this name, which is made; `told.txt` has what Snakemake said.

    A power cut has emptied the profile of its device.
    """
    make_folder(folder)
    write_study(folder, "small", SMALL)
    profile = folder / "results/small/devices/local-disk.json"
    profile.parent.mkdir(parents=True)
    profile.touch()
    (folder / "told.txt").write_text(call(folder, "small"))
    assert_stays_finished(folder, "small", ())


def place_profile(folder: Path, profile: Path, *names: str) -> None:
    """Give studies the profile of their device, so that they need not measure it."""
    for name in names:
        target = folder / f"results/{name}/devices/local-disk.json"
        target.parent.mkdir(parents=True)
        shutil.copy(profile, target)


def command(folder: Path, name: str, *more: str) -> list[str]:
    """Return the command that runs a study of the folder."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)),
        *("--profile", str(ROOT / "profiles/default"), "--cores", "2", *more),
        *("--config", f"study=specs/studies/{name}.yaml"),
    ]


def call_unchecked(folder: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a study, whatever comes of it."""
    return subprocess.run(command(folder, name, *more), capture_output=True, text=True, timeout=1800, check=False)


def call(folder: Path, name: str, *more: str) -> str:
    """Run a study to its end; returns what Snakemake said."""
    done = call_unchecked(folder, name, *more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def assert_stays_finished(folder: Path, name: str, *calls: Sequence[str]) -> None:
    """Fail when calling Snakemake again on a finished study does, says or changes anything; in four ways if not told.

    Each takes some seconds.
    """
    results = folder / "results" / name

    def read_all() -> dict[Path, tuple[bytes, int]]:
        files = (path for path in results.rglob("*") if path.is_file())
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = read_all()
    for options in calls or ((), ("-n",), ("--lint",), ("--unlock",)):
        said = call(folder, name, *options)
        assert "damaged" not in said, said
        assert options in (("--lint",), ("--unlock",)) or "Nothing to be done" in said, said
        assert read_all() == before, f"snakemake {' '.join(options)}"


def query(folder: Path, name: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that a finished study's database answers."""
    with duckdb.connect(str(folder / f"results/{name}/study.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()

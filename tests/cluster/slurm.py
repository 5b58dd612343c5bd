"""A Slurm cluster on this machine (setup/cluster.sh), and what one asks it."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SCRIPT = ROOT / "setup/cluster.sh"


def manage(*arguments: str) -> None:
    """Call setup/cluster.sh, which may take a while: it installs what is missing."""
    subprocess.run([str(_SCRIPT), *arguments], check=True, timeout=900, stdin=subprocess.DEVNULL)


@contextmanager
def run_cluster(*features: str) -> Iterator[None]:
    """Run a cluster with a node for each word, which is what the node has; nothing of it is left at the end."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("a cluster on this machine needs root and apt-get")
    try:
        manage("start", *features)
        yield
    finally:
        manage("stop")


def cluster_command(folder: Path, name: str, *more: str) -> list[str]:
    """Return the command that runs a study of a folder through profiles/slurm; jobs here are too short to wait for."""
    return [
        *(str(ROOT / ".venv/bin/snakemake"), "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)),
        *("--profile", str(ROOT / "profiles/slurm")),
        *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
        *(*more, "--config", f"study=specs/studies/{name}.yaml"),
    ]


def ask(*command: str) -> list[str]:
    """Return the lines that a command of Slurm answers."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines()


def list_jobs(*states: str) -> list[tuple[str, str, str]]:
    """Return (job, node, what it is) of the jobs in the queue, or of those in some states."""
    chosen = [f"--states={','.join(states)}"] if states else []
    lines = ask("squeue", "--noheader", "--format=%A|%N|%k", *chosen)
    return [tuple(line.split("|", 2)) for line in lines]  # type: ignore[misc]


def node_state(node: str) -> str:
    """Return the state of a node as Slurm names it."""
    return ask("sinfo", "--noheader", "--Node", f"--nodes={node}", "--format=%T")[0]


def tell_node(node: str, state: str) -> None:
    """Put a node into a state, as an administrator does."""
    reason = [] if state == "resume" else ["reason=test"]
    subprocess.run(["scontrol", "update", f"nodename={node}", f"state={state}", *reason], check=True, timeout=300)


def await_that(what: str, holds: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something holds; the test fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not after {seconds:.0f} s: {what}"
        time.sleep(0.2)

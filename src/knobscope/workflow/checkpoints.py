"""What the checkpoints `select` and `reinforce` wrote, which decides on what follows them."""

import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from snakemake.exceptions import IncompleteCheckpointException

from knobscope.durable_files import read_sealed

#: Options with which Snakemake draws rules and not jobs.
_GRAPHS = frozenset({"--rulegraph", "--filegraph"})


def is_asked(options: Collection[str]) -> bool:
    """Whether the command line has one of these options, with a value behind = or without."""
    return any(word.partition("=")[0] in options for word in sys.argv)


@cache  # what is evaluated stays so; Snakemake searches through all checkpoints to say it, and is asked often
def find_output(checkpoint: Any, case: str, round_: int) -> str:
    """Return the output of a checkpoint; Snakemake's IncompleteCheckpointException where it is not evaluated yet.

    A graph of rules goes on behind such a checkpoint: no job runs in it.
    """
    try:
        return str(checkpoint.get(case=case, round=round_).output[0])
    except IncompleteCheckpointException as incomplete:
        if not is_asked(_GRAPHS):
            raise
        return str(incomplete.targetfile)


def read_output(path: str) -> dict[str, Any] | None:
    """Return what a checkpoint wrote, which is read again only after a job has made it anew.

    None: it is not made yet, in a graph of rules, which shows no further round.
    """
    if not Path(path).exists() and is_asked(_GRAPHS):
        return None
    status = Path(path).stat()
    return _read_version(Path(path).absolute(), (status.st_mtime_ns, status.st_ino))


@cache
def _read_version(path: Path, version: tuple[int, int]) -> dict[str, Any]:
    return read_sealed(path)

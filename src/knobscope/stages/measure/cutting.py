"""Whether a configuration that its spec calls safe keeps what it acknowledged when the power is cut."""

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from knobscope.errors import UserError
from knobscope.generators import has_own_tables
from knobscope.processes import follow_pipeline, keep_mounts_private, open_temporary
from knobscope.processes.parallel import end_with_parent, open_workers
from knobscope.specs import YCSB, Case, Dbms, StudySpecs, Value, Workload, split_configuration, split_kernel
from knobscope.stages.measure.power_cut import PowerCut, cut_power
from knobscope.stages.measure.validity import RunFailedError
from knobscope.stages.prepare import SnapshotFailedError, load_values_of, prepare_snapshot
from knobscope.statistics.ranks import is_larger
from knobscope.tables import CutColumns

#: Seconds that rows are written before a cut, at random; where logs are flushed once a second, one lies in between.
_WRITING_S = (0.2, 1.5)
#: Loaded before: power cuts need a table, not its size.
_RECORDS = 1000
_CHANCE = 0.05
Cutter = Callable[[Dbms, Workload, Mapping[str, Value], int], tuple[list[PowerCut], str]]


def cut_configuration(
    dbms: Dbms, workload: Workload, configuration: Mapping[str, Value], cuts: int, scratch: Path
) -> tuple[list[PowerCut], str]:
    """Return so many power cuts of a configuration, and why there are fewer, if there are.

    What this process mounts stays private from now on. `scratch`: a directory of the caller's alone.
    """
    small = workload.model_copy(update={"records": min(workload.records, _RECORDS), "threads": 1, "memory_mib": None})
    done: list[PowerCut] = []
    try:
        keep_mounts_private([scratch.resolve()])
        snapshot = prepare_snapshot(dbms, small, load_values_of(dbms, dict(configuration)), scratch)
        for _ in range(cuts):
            seconds = random.Random(time.time_ns()).uniform(*_WRITING_S)  # noqa: S311 - a moment
            done.append(cut_power(dbms, small, configuration, snapshot, scratch, seconds))
    except (SnapshotFailedError, RunFailedError) as error:
        return done, f"{dbms.name} does not run with it: {error}"
    except (UserError, OSError) as error:  # in a container, for instance
        return done, f"this machine cannot: {getattr(error, 'strerror', None) or error}"
    return done, ""


def _prepare_worker() -> None:
    follow_pipeline()
    end_with_parent()


@contextmanager
def open_cutter(directory: Path) -> Iterator[Cutter]:
    """Yield `cut_configuration` in a process with mounts of its own, and a new directory below this one."""
    with (
        open_temporary("knobscope-cuts-", directory.absolute()) as scratch,
        open_workers(1, _prepare_worker) as pool,
    ):
        scratch.chmod(0o711)

        def cut(
            dbms: Dbms, workload: Workload, configuration: Mapping[str, Value], cuts: int
        ) -> tuple[list[PowerCut], str]:
            return pool.submit(cut_configuration, dbms, workload, configuration, cuts, scratch).result()

        yield cut


def cut_case(
    specs: StudySpecs,
    case: Case,
    configuration: Mapping[str, Value],
    default: Mapping[str, Value],
    cuts: int,
    cutter: Cutter,
) -> CutColumns:
    """Return what so many power cuts say of a configuration of a case, as columns of a table.

    The default configuration is cut only where this one loses rows: it may lose as many.
    """
    workload = specs.workloads[case.workload]
    if reason := _find_obstacle(specs.dbms[case.dbms], workload):
        return {"uncut": reason}

    def cut(configuration: Mapping[str, Value]) -> tuple[list[PowerCut], str]:
        _, others = split_kernel(configuration)
        changed, knobs, _ = split_configuration(workload, others)
        return cutter(specs.dbms[case.dbms], changed, knobs, cuts)

    tried, reason = cut(configuration)
    if not tried:
        return {"uncut": reason}
    row: CutColumns = {"cuts": len(tried), "cuts_lost": count_losses(tried)}
    rows_lost = [power_cut.lost for power_cut in tried if power_cut.lost is not None]
    row["rows_lost"] = max(rows_lost) if len(rows_lost) == len(tried) else None
    if reason:
        row["uncut"] = reason
    if row["cuts_lost"]:
        of_default, reason = cut(default)
        if reason:  # losses of fewer cuts, or of none, are no measure of others
            row["uncut"] = f"the default configuration could not be cut as often: {reason}"
        else:
            row |= {"default_cuts_lost": count_losses(of_default), "loses_more": loses_more(tried, of_default)}
    return row


def _find_obstacle(dbms: Dbms, workload: Workload) -> str | None:
    if os.geteuid() != 0:
        return "that needs root"
    if dbms.layout_parts:
        return "parts of its data lie on other devices"
    if workload.generator != YCSB or has_own_tables(workload):
        return "its load is not that of YCSB"
    return None


def count_losses(cuts: Sequence[PowerCut]) -> int:
    """Return after how many cuts rows were gone, or the DBMS did not come back."""
    return sum(power_cut.lost != 0 for power_cut in cuts)


def loses_more(cuts: Sequence[PowerCut], default: Sequence[PowerCut]) -> bool:
    """Whether cuts cost more rows than those of the default configuration, beyond chance.

    One-sided Mann-Whitney test, 5 %; not to come back is worse than any number of rows. Some defaults lose rows
    themselves, and whether one cut does is chance.
    """
    lost, of_default = ([math.inf if cut.lost is None else cut.lost for cut in group] for group in (cuts, default))
    return is_larger(np.array(lost), np.array(of_default), _CHANCE)

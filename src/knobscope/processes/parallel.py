"""Independent pieces of work over several processes, with results that do not depend on how many."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

from knobscope.errors import UserError

__all__ = ["end_with_parent", "map_over_processes", "one_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Exit code of a worker whose parent is gone.
_PARENT_GONE = 137


def map_over_processes(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield the results in the order of the items, from at most `jobs` processes (1: from this one).

    `work` has to be picklable. UserError: `jobs` below 1.
    """
    if jobs < 1:
        raise UserError(f"--jobs is {jobs}; expected at least 1")
    todo = list(items)
    if jobs == 1 or len(todo) < 2:
        with one_thread():
            yield from map(work, todo)
        return
    # Fresh interpreters: forking a process whose BLAS has threads can hang.
    workers = min(jobs, len(todo))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker) as pool:
        yield from pool.map(work, todo)


def one_thread() -> AbstractContextManager[Any]:
    """Keep BLAS and OpenMP to one thread: matrices here are so small that threads only wait for each other."""
    # threadpoolctl sees only libraries that are loaded.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]


def end_with_parent() -> None:
    """Let a worker process end when the process that started it has ended, also by kill -9: it would wait for good."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_await_end, args=(parent,), daemon=True).start()


def _await_end(process: BaseProcess) -> None:
    process.join()
    os._exit(_PARENT_GONE)


def _prepare_worker() -> None:
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are loaded later
    one_thread()

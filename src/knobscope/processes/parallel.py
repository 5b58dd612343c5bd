"""Independent pieces of work over several processes, with results that do not depend on how many."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from knobscope.errors import UserError

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
    with open_workers(min(jobs, len(todo)), _prepare_worker) as pool:
        yield from pool.map(work, todo)


@contextmanager
def open_workers(count: int, prepare: Callable[[], None]) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that work for this one; SIGTERM ends them, and then this one as if it had asked to exit.

    Who just dies leaves semaphores to `multiprocessing`, which warns of them.
    """

    def end(number: int, _: object) -> None:
        for worker in active_children():
            worker.terminate()
        raise SystemExit(128 + number)

    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    try:
        if is_ours:
            signal.signal(signal.SIGTERM, end)
        # Fresh interpreters: forking a process whose BLAS has threads can hang.
        with ProcessPoolExecutor(count, get_context("spawn"), prepare) as pool:
            yield pool
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
        threading.Thread(target=_await_end, args=(parent,), daemon=True).start()


def _await_end(process: BaseProcess) -> None:
    process.join()
    os._exit(_PARENT_GONE)


def _prepare_worker() -> None:
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are loaded later
    one_thread()

"""Readers of what generators print and write, by the names that specs use: one module each, all with one result."""

from collections.abc import Callable

from knobscope.generators.consistency import require_consistent
from knobscope.generators.output import Output
from knobscope.generators.parsers.db_bench import read_db_bench
from knobscope.generators.parsers.fio import read_fio
from knobscope.generators.parsers.generic import read_generic
from knobscope.generators.parsers.pgbench import read_pgbench
from knobscope.generators.parsers.redis_benchmark import read_redis_benchmark
from knobscope.generators.parsers.sysbench import read_sysbench
from knobscope.generators.parsers.wtperf import read_wtperf
from knobscope.generators.results import LoadResult

#: A reader takes the output and the length of an interval in seconds. For output that it does not know it may raise
#: any of these exceptions: `read_output` is the way in.
OUTPUT_READERS: dict[str, Callable[[Output, float], LoadResult]] = {
    "pgbench": read_pgbench,
    "sysbench": read_sysbench,
    "redis_benchmark": read_redis_benchmark,
    "db_bench": read_db_bench,
    "wtperf": read_wtperf,
    "fio": read_fio,
    "generic": read_generic,
}

#: What code raises that was written for another output.
_UNKNOWN = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError)


def read_output(parser: str, output: Output, interval_s: float) -> LoadResult:
    """Return the figures of a generator's output, with intervals of `interval_s`.

    Raises ValueError where it was cut, is not that of this generator, or has figures that contradict each other.
    """
    try:
        result = OUTPUT_READERS[parser](output, interval_s)
    except _UNKNOWN as error:
        raise ValueError(f"it has no such form ({type(error).__name__}: {error})") from error
    require_consistent(result)
    return result

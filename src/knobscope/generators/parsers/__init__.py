"""Readers of what generators print and write, by the names that specs use: one module each, all with one result."""

from collections.abc import Callable

from knobscope.generators.output import Output
from knobscope.generators.parsers.db_bench import read_db_bench
from knobscope.generators.parsers.fio import read_fio
from knobscope.generators.parsers.pgbench import read_pgbench
from knobscope.generators.parsers.redis_benchmark import read_redis_benchmark
from knobscope.generators.parsers.sysbench import read_sysbench
from knobscope.generators.parsers.wtperf import read_wtperf
from knobscope.generators.results import LoadResult

__all__ = ["OUTPUT_READERS"]

#: A reader takes the output and the length of an interval in seconds; it raises ValueError, KeyError or OSError for
#: output that it does not know.
OUTPUT_READERS: dict[str, Callable[[Output, float], LoadResult]] = {
    "pgbench": read_pgbench,
    "sysbench": read_sysbench,
    "redis_benchmark": read_redis_benchmark,
    "db_bench": read_db_bench,
    "wtperf": read_wtperf,
    "fio": read_fio,
}
